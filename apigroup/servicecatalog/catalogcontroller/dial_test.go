package catalogcontroller

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// running returns a pod with an address.
func running(namespace, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "broker"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: address}}},
	}
}

// endpointsOf returns the endpoints of the service "broker". The only endpoint is the pod "broker"
// with the given address, which can differ from the pod's real address.
func endpointsOf(namespace, address string, port int32) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "broker", Labels: map[string]string{discoveryv1.LabelServiceName: "broker"}},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("web"), Port: &port}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "broker"}}},
	}
}

func TestBrokerOfProjectMustBeItsPod(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broker"},
		Spec:       corev1.ServiceSpec{ClusterIP: "172.30.0.9", Ports: []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "other", Port: 81}}},
	}
	pod := running("shop", "10.128.0.5")
	ended := running("shop", "10.128.0.5")
	ended.Status.Phase = corev1.PodSucceeded
	unready := endpointsOf("shop", "10.128.0.5", 8080)
	unready.Endpoints[0].Conditions.Ready = ptr.To(false)
	anonymous := endpointsOf("shop", "198.51.100.7", 8080)
	anonymous.Endpoints[0].TargetRef = nil
	for name, tt := range map[string]struct {
		objects []runtime.Object
		port    string
		want    string // the address, or a part of the error
	}{
		"pod":                      {[]runtime.Object{pod, endpointsOf("shop", "10.128.0.5", 8080)}, "80", "10.128.0.5:8080"},
		"address of another host":  {[]runtime.Object{pod, endpointsOf("shop", "198.51.100.7", 8080)}, "80", "no running pod"},
		"endpoint without pod":     {[]runtime.Object{pod, anonymous}, "80", "no running pod"},
		"ended pod":                {[]runtime.Object{ended, endpointsOf("shop", "10.128.0.5", 8080)}, "80", "no running pod"},
		"pod of another project":   {[]runtime.Object{running("other", "10.128.0.5"), endpointsOf("shop", "10.128.0.5", 8080)}, "80", "no running pod"},
		"pod that is not ready":    {[]runtime.Object{pod, unready}, "80", "no running pod"},
		"port without endpoints":   {[]runtime.Object{pod, endpointsOf("shop", "10.128.0.5", 8080)}, "81", "no running pod"},
		"port that does not exist": {[]runtime.Object{pod, endpointsOf("shop", "10.128.0.5", 8080)}, "82", "has no port 82"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{kube: fake.NewClientset(append(tt.objects, service)...), domain: "cluster.local"}
			broker := viewBroker(&v1beta1.ServiceBroker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}})
			address, err := r.serviceAddress(t.Context(), broker, "broker.shop.svc", tt.port, "http")
			if err == nil && address != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v, want %q", address, err, tt.want)
			}
		})
	}
}

// TestAddressesOfBrokers checks which addresses are allowed for administrators' and projects'
// brokers.
func TestAddressesOfBrokers(t *testing.T) {
	var host string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host = r.Host
		_, _ = w.Write([]byte(`{"services": []}`))
	}))
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	service := func(namespace string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "broker"},
			Spec:       corev1.ServiceSpec{ClusterIP: "127.0.0.1", Ports: []corev1.ServicePort{{Name: "web", Port: int32(number)}}},
		}
	}
	r := &reconciler{
		kube: fake.NewClientset(service("shop"), service("other"), running("shop", "127.0.0.1"), running("other", "127.0.0.1"),
			endpointsOf("shop", "127.0.0.1", int32(number)), endpointsOf("other", "127.0.0.1", int32(number))), dialer: outbound.New(outbound.Policy{}),
		domain: "cluster.local", timing: Timing{}.withDefaults(),
	}
	fetch := func(namespace, url string) error {
		view := viewBroker(&v1beta1.ServiceBroker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "broker"}})
		view.spec.URL = url
		client, closeIdle, err := r.connection(t.Context(), view)
		if err != nil {
			return err
		}
		defer closeIdle()
		_, err = client.Catalog(t.Context())
		return err
	}
	for url, namespaces := range map[string]string{
		server.URL:                       "cluster",
		"http://broker.shop.svc:" + port: "cluster shop",
		"http://broker.shop.svc.cluster.local:" + port: "cluster shop",
		"http://broker.other.svc:" + port:              "cluster other",
	} {
		for _, namespace := range []string{"cluster", "shop", "other"} {
			err := fetch(strings.TrimPrefix(namespace, "cluster"), url)
			if allowed := strings.Contains(namespaces, namespace); (err == nil) != allowed {
				t.Errorf("%s for %s: %v, want allowed: %t", url, namespace, err, allowed)
			}
			var refused *outbound.Refused
			var p *problem
			if err != nil && !errors.As(err, &refused) && !errors.As(err, &p) {
				t.Errorf("%s for %s: %v", url, namespace, err)
			}
		}
	}
	if err := fetch("shop", "http://broker.shop.svc:"+port); err != nil || host != "broker.shop.svc:"+port {
		t.Errorf("the host of the request is %q, %v", host, err)
	}
}

func TestTokenAuthorizesRequests(t *testing.T) {
	r := &reconciler{kube: fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broker"}, Data: map[string][]byte{v1beta1.TokenKey: []byte("abc\n")},
	})}
	broker := &v1beta1.ServiceBroker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
	broker.Spec.AuthInfo = &v1beta1.ServiceBrokerAuthInfo{Bearer: &v1beta1.AuthConfig{SecretRef: &v1beta1.LocalObjectReference{Name: "broker"}}}
	if got, err := r.authorization(t.Context(), viewBroker(broker)); got != "Bearer abc" || err != nil {
		t.Errorf("the header is %q, %v", got, err)
	}
	broker.Spec.AuthInfo = &v1beta1.ServiceBrokerAuthInfo{Basic: broker.Spec.AuthInfo.Bearer}
	if got, err := r.authorization(t.Context(), viewBroker(broker)); err == nil || !strings.Contains(err.Error(), `has no key "username"`) {
		t.Errorf("without a user name, the header is %q, %v", got, err)
	}
}
