package masters

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// registered returns the EndpointSlice in which API servers register their addresses.
func registered(addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("dns"), Port: ptr.To[int32](8053)}, {Port: ptr.To[int32](1)}, {Name: ptr.To("https"), Port: ptr.To[int32](8443)},
		},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

func TestAPIServersIncludePort(t *testing.T) {
	for name, tt := range map[string]struct{ addresses, want []string }{
		"several masters": {[]string{"192.0.2.1", "192.0.2.2"}, []string{"192.0.2.1:8443", "192.0.2.2:8443"}},
		"IPv6":            {[]string{"2001:db8::1"}, []string{"[2001:db8::1]:8443"}},
		"none":            {nil, nil},
	} {
		client := fake.NewClientset(registered(tt.addresses...))
		got, err := APIServers(t.Context(), client, metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got, want := CountAPIServers(client), max(len(tt.want), 1); got != want {
			t.Errorf("%s: counted %d, want %d", name, got, want)
		}
	}
}

func TestOneAPIServerIsCountedIfListFails(t *testing.T) {
	client := fake.NewClientset()
	if _, err := APIServers(t.Context(), client, metav1.GetOptions{}); err == nil {
		t.Error("a missing list is not an error")
	}
	if got := CountAPIServers(client); got != 1 {
		t.Errorf("got %d", got)
	}
}

func TestConnectionsDifferOnlyInAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer abc" {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(registered("192.0.2.1", "192.0.2.2")); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	connections, err := Connections(t.Context(), &rest.Config{Host: server.URL, BearerToken: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, connection := range connections {
		hosts = append(hosts, connection.Host)
		if connection.BearerToken != "abc" {
			t.Errorf("%s: the token is missing", connection.Host)
		}
	}
	if diff := cmp.Diff([]string{"https://192.0.2.1:8443", "https://192.0.2.2:8443"}, hosts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
