package catalogcontroller

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/outbound"
)

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
	service := func(namespace string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "broker"}, Spec: corev1.ServiceSpec{ClusterIP: "127.0.0.1"}}
	}
	r := &reconciler{
		kube: fake.NewClientset(service("shop"), service("other")), dialer: outbound.New(outbound.Policy{}),
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
