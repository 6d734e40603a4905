package reach

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func request(object, old runtime.Object, resource schema.GroupVersionResource, who string) admission.Attributes {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	return admission.NewAttributesRecord(object, old, resource.GroupVersion().WithKind("x"), "shop", "x", resource, "", operation,
		&metav1.CreateOptions{}, false, &user.DefaultInfo{Name: who})
}

func service(addresses ...string) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: addresses}}
}

func TestExternalAddressesComeFromTheAllowedNetworks(t *testing.T) {
	plugin, err := newRanger([]string{"192.0.2.0/24", "!192.0.2.128/25"}, netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	services := corev1.SchemeGroupVersion.WithResource("services")
	for address, ok := range map[string]bool{"192.0.2.1": true, "192.0.2.200": false, "198.51.100.1": false, "x": false} {
		if err := plugin.Validate(t.Context(), request(service(address), nil, services, "joe"), nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := plugin.Validate(t.Context(), request(service("198.51.100.1"), service("198.51.100.1"), services, "joe"), nil); err != nil {
		t.Errorf("an address that the service has: %v", err)
	}
	if _, err := newRanger([]string{"192.0.1.0.0/24"}, netip.Prefix{}); err == nil || !strings.Contains(err.Error(), "externalIPNetworkCIDRs") {
		t.Errorf("a network of five numbers: %v", err)
	}
}

func TestAddressesOfTheIngressNetworkAreNotChosen(t *testing.T) {
	plugin, err := newRanger([]string{"0.0.0.0/0"}, netip.MustParsePrefix("172.29.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	balanced := func(given string, addresses ...string) *corev1.Service {
		s := service(addresses...)
		s.Spec.Type, s.Status.LoadBalancer.Ingress = corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: given}}
		return s
	}
	for name, c := range map[string]struct {
		object, old *corev1.Service
		ok          bool
	}{
		"another network": {service("192.0.2.1"), nil, true}, "made with one": {balanced("172.29.0.1", "172.29.0.1"), nil, false},
		"its own": {balanced("172.29.0.1", "172.29.0.1"), balanced("172.29.0.1"), true}, "another's": {balanced("172.29.0.1", "172.29.0.2"), balanced("172.29.0.1"), false},
		"its own as another type": {service("172.29.0.1"), balanced("172.29.0.1"), false}, "its own, kept": {service("172.29.0.1"), balanced("172.29.0.1", "172.29.0.1"), true},
	} {
		var old runtime.Object
		if c.old != nil {
			old = c.old
		}
		if err := plugin.Validate(t.Context(), request(c.object, old, corev1.SchemeGroupVersion.WithResource("services"), "joe"), nil); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// operators lets the user `operator` make restricted endpoints.
func operators() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "operator" && a.GetSubresource() == "restricted" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func TestEndpointsStayOutOfTheClustersNetworks(t *testing.T) {
	plugin := &endpoints{
		Handler: admission.NewHandler(admission.Create, admission.Update), authorizer: operators(),
		restricted: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")},
	}
	of := func(address string) *corev1.Endpoints {
		return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{NotReadyAddresses: []corev1.EndpointAddress{{IP: address}}}}}
	}
	slice := &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"172.30.0.1"}}}}
	resource, slices := corev1.SchemeGroupVersion.WithResource("endpoints"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	for _, c := range []struct {
		object, old runtime.Object
		resource    schema.GroupVersionResource
		who         string
		ok          bool
	}{
		{of("192.0.2.1"), nil, resource, "joe", true},
		{of("10.128.0.5"), nil, resource, "joe", false},
		{of("10.128.0.5"), nil, resource, "operator", true},
		{of("10.128.0.5"), of("10.128.0.5"), resource, "joe", true},
		{of("10.128.0.6"), of("10.128.0.5"), resource, "joe", false},
		{slice, nil, slices, "joe", false},
		{slice, nil, slices, "operator", true},
	} {
		if err := plugin.Validate(t.Context(), request(c.object, c.old, c.resource, c.who), nil); (err == nil) != c.ok {
			t.Errorf("%s, %v after %v: %v", c.who, c.object, c.old, err)
		}
	}
}
