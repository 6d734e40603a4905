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
