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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	rules "github.com/slipway-platform/slipway/internal/endpoints"
)

func request(object, old runtime.Object, resource schema.GroupVersionResource, who string, subresource ...string) admission.Attributes {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	return admission.NewAttributesRecord(object, old, resource.GroupVersion().WithKind("x"), "shop", "x", resource, strings.Join(subresource, ""), operation,
		&metav1.CreateOptions{}, false, &user.DefaultInfo{Name: who})
}

// platform returns the reserved addresses of a cluster with a node at 198.51.100.10.
func platform(t *testing.T) *reserved {
	t.Helper()
	r := newReserved([]network{
		{netip.MustParsePrefix("10.128.0.0/14"), "the pod network"}, {netip.MustParsePrefix("172.30.0.0/16"), "the service network"}, {netip.Prefix{}, "no network"},
	})
	factory := informers.NewSharedInformerFactory(fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "node"}, {Address: "198.51.100.10"}}},
	}), 0)
	if err := r.use(factory); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	return r
}

// platformAddresses returns reserved addresses, some of them in other notations that the service
// proxy also accepts: with leading zeros, and as IPv4-mapped IPv6 addresses.
func platformAddresses() []string {
	return []string{
		"10.128.0.5", "010.128.0.5", "::ffff:10.128.0.5", "::ffff:a80:5", "172.30.0.1", "::ffff:172.30.0.1", "198.51.100.10", "::ffff:198.51.100.10",
		"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1",
		"255.255.255.255", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
	}
}

func service(addresses ...string) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: addresses}}
}

func services() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("services")
}

func TestExternalIPRangerAllowsConfiguredNetworks(t *testing.T) {
	plugin, err := newRanger([]string{"192.0.2.0/24", "!::ffff:192.0.2.128/121", "2001:db8::/64"}, netip.Prefix{}, platform(t))
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		"192.0.2.1": true, "::ffff:192.0.2.1": true, "192.0.2.200": false, "::ffff:192.0.2.200": false, "198.51.100.1": false, "x": false, "2001:db8::1": true, "2001:db9::1": false,
	} {
		if err := plugin.Validate(t.Context(), request(service(address), nil, services(), "joe"), nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	update := service("198.51.100.1")
	update.Spec.Selector = map[string]string{"app": "web"}
	if err := plugin.Validate(t.Context(), request(update, service("198.51.100.1"), services(), "joe"), nil); err != nil {
		t.Errorf("an address that the service already has: %v", err)
	}
	if _, err := newRanger([]string{"192.0.1.0.0/24"}, netip.Prefix{}, platform(t)); err == nil || !strings.Contains(err.Error(), "externalIPNetworkCIDRs") {
		t.Errorf("an invalid network: got error %v", err)
	}
}

func TestExternalIPRangerRejectsAllByDefault(t *testing.T) {
	plugin, err := newRanger(nil, netip.Prefix{}, platform(t))
	if err != nil {
		t.Fatal(err)
	}
	err = plugin.Validate(t.Context(), request(service("192.0.2.1"), nil, services(), "joe"), nil)
	if err == nil || !strings.Contains(err.Error(), "spec.externalIPs[0]") || !strings.Contains(err.Error(), "which allows none") {
		t.Errorf("error is %v", err)
	}
}

func TestExternalIPRangerRejectsPlatformAddresses(t *testing.T) {
	plugin, err := newRanger([]string{"0.0.0.0/0", "::/0"}, netip.Prefix{}, platform(t))
	if err != nil {
		t.Fatal(err)
	}
	balanced := func(address string, mode corev1.LoadBalancerIPMode) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: address, IPMode: ptr.To(mode)}}}}}
	}
	for _, address := range platformAddresses() {
		changed := service(address)
		changed.Spec.Ports = []corev1.ServicePort{{Port: 10250}}
		for name, c := range map[string]struct {
			request admission.Attributes
			ok      bool
		}{
			"new":                      {request(service(address), nil, services(), "joe"), false},
			"added":                    {request(service("192.0.2.1", address), service("192.0.2.1"), services(), "joe"), false},
			"kept with a changed port": {request(changed, service(address), services(), "joe"), false},
			"kept":                     {request(service(address), service(address), services(), "joe"), true},
			"removed":                  {request(service(), service(address), services(), "joe"), true},
			"loadBalancerIP":           {request(&corev1.Service{Spec: corev1.ServiceSpec{LoadBalancerIP: address}}, nil, services(), "joe"), false},
			"status":                   {request(balanced(address, corev1.LoadBalancerIPModeVIP), service(), services(), "joe", "status"), false},
			"status with ipMode Proxy": {request(balanced(address, corev1.LoadBalancerIPModeProxy), service(), services(), "joe", "status"), true},
			"unchanged status":         {request(balanced(address, corev1.LoadBalancerIPModeVIP), balanced(address, corev1.LoadBalancerIPModeVIP), services(), "joe", "status"), true},
		} {
			if err := plugin.Validate(t.Context(), c.request, nil); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v", address, name, err)
			}
		}
	}
	if err := plugin.Validate(t.Context(), request(balanced("203.0.113.5", corev1.LoadBalancerIPModeVIP), service(), services(), "joe", "status"), nil); err != nil {
		t.Errorf("a load balancer address outside the cluster: %v", err)
	}
}

func TestExternalIPRangerRejectsChosenIngressAddresses(t *testing.T) {
	plugin, err := newRanger([]string{"0.0.0.0/0"}, netip.MustParsePrefix("172.29.0.0/16"), platform(t))
	if err != nil {
		t.Fatal(err)
	}
	balanced := func(value string, addresses ...string) *corev1.Service {
		s := service(addresses...)
		s.Spec.Type, s.Status.LoadBalancer.Ingress = corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: value}}
		return s
	}
	for name, c := range map[string]struct {
		object, old *corev1.Service
		ok          bool
	}{
		"another network": {service("192.0.2.1"), nil, true}, "new service with an ingress address": {balanced("172.29.0.1", "172.29.0.1"), nil, false},
		"its own": {balanced("172.29.0.1", "172.29.0.1"), balanced("172.29.0.1"), true}, "another service's": {balanced("172.29.0.1", "172.29.0.2"), balanced("172.29.0.1"), false},
		"another service's in a different notation": {balanced("172.29.0.1", "::ffff:172.29.0.2"), balanced("172.29.0.1"), false},
		"its own with another service type":         {service("172.29.0.1"), balanced("172.29.0.1"), false}, "its own, unchanged": {service("172.29.0.1"), balanced("172.29.0.1", "172.29.0.1"), true},
	} {
		var old runtime.Object
		if c.old != nil {
			old = c.old
		}
		if err := plugin.Validate(t.Context(), request(c.object, old, services(), "joe"), nil); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// operators returns an authorizer that allows the user `operator` to create restricted endpoints.
func operators() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "operator" && a.GetSubresource() == "restricted" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func TestRestrictedEndpointsRejectPlatformAddresses(t *testing.T) {
	plugin := newEndpoints(platform(t))
	plugin.SetAuthorizer(operators())
	of := func(address string, port int32) *corev1.Endpoints {
		return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{
			NotReadyAddresses: []corev1.EndpointAddress{{IP: address}}, Ports: []corev1.EndpointPort{{Port: port}},
		}}}
	}
	slice := func(address string, port int32) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}, Ports: []discoveryv1.EndpointPort{{Port: &port}}}
	}
	annotated := of("10.128.0.5", 80)
	annotated.Annotations = map[string]string{"a": "b"}
	resource, slices := corev1.SchemeGroupVersion.WithResource("endpoints"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	type attempt struct {
		object, old runtime.Object
		resource    schema.GroupVersionResource
		user        string
		ok          bool
	}
	attempts := []attempt{
		{of("192.0.2.1", 80), nil, resource, "joe", true},
		{slice("192.0.2.1", 80), nil, slices, "joe", true},
		{annotated, of("10.128.0.5", 80), resource, "joe", true},
		{of("10.128.0.5", 10250), of("10.128.0.5", 80), resource, "joe", false},
		{slice("10.128.0.5", 10250), slice("10.128.0.5", 80), slices, "joe", false},
	}
	for _, address := range platformAddresses() {
		attempts = append(attempts,
			attempt{of(address, 80), nil, resource, "joe", false}, attempt{slice(address, 80), nil, slices, "joe", false},
			attempt{of(address, 80), of("192.0.2.1", 80), resource, "joe", false}, attempt{slice(address, 80), slice("192.0.2.1", 80), slices, "joe", false},
			attempt{of(address, 80), nil, resource, "operator", true}, attempt{slice(address, 80), nil, slices, "operator", true},
		)
	}
	for _, c := range attempts {
		if err := plugin.Validate(t.Context(), request(c.object, c.old, c.resource, c.user), nil); (err == nil) != c.ok {
			t.Errorf("%s, %v after %v: %v", c.user, c.object, c.old, err)
		}
	}
}

func TestUsersCannotKeepEndpointsOfControllers(t *testing.T) {
	plugin := newEndpoints(platform(t))
	plugin.SetAuthorizer(operators())
	of := func(labels map[string]string) *corev1.Endpoints {
		return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	slice := func(controller, service string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			discoveryv1.LabelManagedBy: controller, discoveryv1.LabelServiceName: service,
		}}}
	}
	managed, own := of(map[string]string{rules.ManagedBy: rules.Controller}), of(map[string]string{rules.ManagedBy: "joe"})
	annotated := managed.DeepCopy()
	annotated.Annotations = map[string]string{"a": "b"}
	resource, slices := corev1.SchemeGroupVersion.WithResource("endpoints"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	for name, c := range map[string]struct {
		object, old runtime.Object
		resource    schema.GroupVersionResource
		user        string
		ok          bool
	}{
		"without the label":      {of(nil), managed, resource, "joe", false},
		"with another label":     {own, managed, resource, "joe", false},
		"by an operator":         {of(nil), managed, resource, "operator", true},
		"with an annotation":     {annotated, managed, resource, "joe", true},
		"a user's own object":    {of(nil), own, resource, "joe", true},
		"a new object":           {managed, nil, resource, "joe", true},
		"slice without label":    {slice("", "web"), slice(rules.SliceController, "web"), slices, "joe", false},
		"slice of another":       {slice(rules.SliceController, "db"), slice(rules.SliceController, "web"), slices, "joe", false},
		"slice that is the same": {slice(rules.SliceController, "web"), slice(rules.SliceController, "web"), slices, "joe", true},
		"a user's own slice":     {slice("joe", "db"), slice("joe", "web"), slices, "joe", true},
	} {
		if err := plugin.Validate(t.Context(), request(c.object, c.old, c.resource, c.user), nil); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlatformNetworksIncludeConfiguration(t *testing.T) {
	networks := Networks{
		Pods:     []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/48"), {}},
		Services: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("::ffff:10.4.0.0/112")},
		Hosts:    []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::7"), {}},
		Resolver: netip.MustParseAddr("203.0.113.53"),
	}
	r := newReserved(networks.platform())
	for address, want := range map[string]string{
		"10.1.255.255": "the pod network", "fd01::1": "the pod network", "10.3.0.1": "the service network", "10.4.0.1": "the service network",
		"198.51.100.7": "the network of the nodes", "198.51.100.8": "", "2001:db8::7": "the network of the nodes", "2001:db8::8": "",
		"203.0.113.53": "the network of the DNS server", "203.0.113.54": "", "192.0.2.1": "",
	} {
		if got := r.owner(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestPlatformNetworksAreOptional(t *testing.T) {
	if networks := (Networks{Hosts: []netip.Addr{{}}}).platform(); len(networks) > 0 {
		t.Errorf("got %v", networks)
	}
}
