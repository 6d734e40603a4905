package scrape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/node/hostreport"
)

func node(name, address, report string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{hostreport.Annotation: report}},
		Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10251}},
		},
	}
}

func service(namespace, name string, annotations map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
}

// slice returns an endpoint slice for a service: one endpoint with the ports https (8443) and dns
// (53).
func slice(namespace, service, address, pod string) *discoveryv1.EndpointSlice {
	endpoint := discoveryv1.Endpoint{Addresses: []string{address}}
	if pod != "" {
		endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service + address, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Endpoints:  []discoveryv1.Endpoint{endpoint},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](8443)}, {Name: ptr.To("dns"), Port: ptr.To[int32](53)}},
	}
}

func target(address, job, scheme, path string, more ...string) Group {
	l := labels(job, scheme, path)
	for i := 0; i < len(more); i += 2 {
		l[more[i]] = more[i+1]
	}
	return Group{[]string{address}, l}
}

func TestClusterHasMastersNodesAndRouters(t *testing.T) {
	client := fake.NewClientset(
		slice("default", "kubernetes", "192.0.2.1", ""), slice("default", "other", "192.0.2.9", ""),
		node("a", "192.0.2.1", `{"components":[{"process":"node","name":"router"}]}`),
		node("b", "2001:db8::2", `{"components":[{"process":"node","name":"kubelet"}]}`),
		node("c", "192.0.2.3", `{`), node("d", "", ""),
	)
	got, err := cluster(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{
		target("192.0.2.1:8443", "masters", "https", "/metrics"),
		target("192.0.2.1:10251", "nodes", "https", "/metrics", "node", "a"),
		target("192.0.2.1:10251", "containers", "https", "/metrics/cadvisor", "node", "a"),
		target("192.0.2.1:1936", "routers", "http", "/metrics", "node", "a"),
		target("[2001:db8::2]:10251", "nodes", "https", "/metrics", "node", "b"),
		target("[2001:db8::2]:10251", "containers", "https", "/metrics/cadvisor", "node", "b"),
		target("192.0.2.3:10251", "nodes", "https", "/metrics", "node", "c"),
		target("192.0.2.3:10251", "containers", "https", "/metrics/cadvisor", "node", "c"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServicesAreSelectedByAnnotations(t *testing.T) {
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		want        []Group
	}{
		{"none", nil, []Group{}},
		{"refused", map[string]string{scrapeAnnotation: "false"}, []Group{}},
		{"all ports", map[string]string{scrapeAnnotation: "true"}, []Group{
			target("10.0.0.1:8443", "services", "http", "/metrics", "namespace", "shop", "service", "web", "pod", "web-1"),
			target("10.0.0.1:53", "services", "http", "/metrics", "namespace", "shop", "service", "web", "pod", "web-1"),
		}},
		{"details", map[string]string{scrapeAnnotation: "true", schemeAnnotation: "https", pathAnnotation: "stats", portAnnotation: "8443"}, []Group{
			target("10.0.0.1:8443", "services", "https", "/stats", "namespace", "shop", "service", "web", "pod", "web-1"),
		}},
		{"missing port", map[string]string{scrapeAnnotation: "true", portAnnotation: "1"}, []Group{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := []runtime.Object{service("shop", "web", tt.annotations), slice("shop", "web", "10.0.0.1", "web-1")}
			got, err := services(t.Context(), fake.NewClientset(objects...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
