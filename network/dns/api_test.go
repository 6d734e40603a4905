package dns

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// api is a fake API server that implements only the requests that CoreDNS's kubernetes plugin
// sends: list requests, and watches that send only ADDED events.
type api struct {
	mutex   sync.Mutex
	objects map[string][]runtime.Object    // by path
	watches map[string][]chan watchedEvent // by path
	down    bool
}

type watchedEvent struct {
	Type   string         `json:"type"`
	Object runtime.Object `json:"object"`
}

const (
	servicesPath   = "/api/v1/services"
	namespacesPath = "/api/v1/namespaces"
	slicesPath     = "/apis/discovery.k8s.io/v1/endpointslices"
)

func newAPI(t testing.TB) (*api, *rest.Config) {
	a := &api{objects: map[string][]runtime.Object{}, watches: map[string][]chan watchedEvent{}}
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return a, &rest.Config{Host: server.URL}
}

func (a *api) add(path string, object runtime.Object) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.objects[path] = append(a.objects[path], object)
	for _, watch := range a.watches[path] {
		watch <- watchedEvent{"ADDED", object}
	}
}

func (a *api) setDown(down bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.down = down
}

var listKinds = map[string][2]string{
	servicesPath:   {"ServiceList", "v1"},
	namespacesPath: {"NamespaceList", "v1"},
	slicesPath:     {"EndpointSliceList", "discovery.k8s.io/v1"},
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	kind, ok := listKinds[r.URL.Path]
	query := r.URL.Query()
	switch {
	case a.down:
		http.Error(w, "starting", http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(w, r)
	case query.Get("sendInitialEvents") == "true":
		// Respond like an API server that does not support watch lists.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Get("watch") != "":
		events := make(chan watchedEvent, 16)
		a.watches[r.URL.Path] = append(a.watches[r.URL.Path], events)
		a.mutex.Unlock()
		stream(w, r, events)
		a.mutex.Lock()
	default:
		items := a.objects[r.URL.Path]
		if items == nil {
			items = []runtime.Object{}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": kind[0], "apiVersion": kind[1], "metadata": map[string]string{"resourceVersion": "1"}, "items": items,
		})
	}
}

func stream(w http.ResponseWriter, r *http.Request, events <-chan watchedEvent) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		}
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"},
	}
}

func service(name, clusterIP string, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{Kind: "Service", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: "2"},
		Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: ports},
	}
	if clusterIP == "" {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "db.example.com"
	}
	return s
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
}

func slice(service string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	name, protocol := "http", corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-1", Namespace: "shop", ResourceVersion: "2", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
}

func endpoint(address, hostname string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}
