package model

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// slice returns an EndpointSlice with pods at the given addresses and the ports web (8080) and
// admin (9090).
func slice(addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{
		{Name: ptr.To("web"), Port: ptr.To[int32](8080)}, {Name: ptr.To("admin"), Port: ptr.To[int32](9090)},
		{Name: ptr.To("dns"), Port: ptr.To[int32](53), Protocol: ptr.To(corev1.ProtocolUDP)},
	}}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

func buildConfig(route *routev1.Route, slices map[string]*discoveryv1.EndpointSlice,
	services map[string]*corev1.Service) (*ServiceAliasConfig, *State) {
	route.Namespace, route.Name = "shop", "front"
	state := Build([]*routev1.Route{route}, Source{
		Service: func(_, name string) *corev1.Service { return services[name] },
		Slices: func(_, name string) []*discoveryv1.EndpointSlice {
			if slices[name] == nil {
				return nil
			}
			return []*discoveryv1.EndpointSlice{slices[name], slices[name]}
		},
	})
	return state.Aliases["shop:front"], state
}

func TestRoutePort(t *testing.T) {
	for port, want := range map[string]string{"": "9090", "web": "8080", "9090": "9090", "other": "", "dns": ""} {
		route := &routev1.Route{Spec: routev1.RouteSpec{To: routev1.RouteTargetReference{Name: "web"}}}
		if port != "" {
			route.Spec.Port = &routev1.RoutePort{TargetPort: intstr.Parse(port)}
		}
		pods := slice("10.0.0.1", "10.0.0.2")
		pods.Endpoints = append(pods.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}})
		if port == "" {
			pods.Ports = pods.Ports[1:]
		}
		alias, state := buildConfig(route, map[string]*discoveryv1.EndpointSlice{"web": pods}, nil)
		var got []string
		for _, endpoint := range EndpointsOf(alias, state.ServiceUnits["shop/web"]) {
			got = append(got, endpoint.IP+":"+endpoint.Port)
		}
		expected := []string{"10.0.0.1:" + want, "10.0.0.2:" + want}
		if want == "" {
			expected = nil
		}
		if !slices.Equal(got, expected) {
			t.Errorf("port %q selects %v, want %v", port, got, expected)
		}
	}
}

// Users can edit Endpoints, and the API server accepts any text as the name in an address's
// targetRef, so the router must validate the name.
func TestInvalidTextsInEndpointsAreIgnored(t *testing.T) {
	pods := slice("10.0.0.1", "10.0.0.2", "10.0.0.3\n  server evil 10.0.0.4")
	pods.Endpoints[0].TargetRef = &corev1.ObjectReference{Name: "web-0"}
	pods.Endpoints[1].TargetRef = &corev1.ObjectReference{Name: "x 10.0.0.4:80\nprogram p\n  command id; shutdown frontend public"}
	pods.Ports[1].Name = ptr.To("admin ssl\n")
	alias, state := buildConfig(&routev1.Route{Spec: routev1.RouteSpec{To: routev1.RouteTargetReference{Name: "web"}}}, map[string]*discoveryv1.EndpointSlice{"web": pods}, nil)
	var got []string
	for _, endpoint := range state.ServiceUnits["shop/web"].EndpointTable {
		got = append(got, endpoint.ID+" "+endpoint.TargetName+" "+endpoint.PortName)
	}
	if want := []string{"ept:10.0.0.2:10.0.0.2:8080 10.0.0.2 web", "ept:web-0:10.0.0.1:8080 web-0 web"}; !slices.Equal(got, want) {
		t.Errorf("endpoints are %q, want %q", got, want)
	}
	if alias.ActiveEndpoints != 2 {
		t.Errorf("the route has %d endpoints", alias.ActiveEndpoints)
	}
}

func TestEndpointsOfUsersCannotPointToHost(t *testing.T) {
	for by, want := range map[string]int{"endpointslice-controller.k8s.io": 2, "endpointslicemirroring-controller.k8s.io": 0} {
		result := slice("198.51.100.10")
		result.Namespace, result.Labels = "shop", map[string]string{discoveryv1.LabelManagedBy: by}
		source := Source{
			Service: func(string, string) *corev1.Service { return nil },
			Slices:  func(string, string) []*discoveryv1.EndpointSlice { return []*discoveryv1.EndpointSlice{result} },
			Host:    func(address netip.Addr) bool { return address.String() == "198.51.100.10" },
		}
		if got := source.Endpoints("shop", "web"); len(got) != want {
			t.Errorf("endpoints that %s created are %v", by, got)
		}
	}
}

func TestEndpointsShareWeightOfService(t *testing.T) {
	route := &routev1.Route{Spec: routev1.RouteSpec{
		To: routev1.RouteTargetReference{Name: "a", Weight: ptr.To[int32](100)},
		AlternateBackends: []routev1.RouteTargetReference{
			{Name: "b", Weight: ptr.To[int32](100)}, {Name: "c", Weight: ptr.To[int32](0)}, {Name: "empty", Weight: ptr.To[int32](50)},
		},
	}}
	alias, _ := buildConfig(route, map[string]*discoveryv1.EndpointSlice{"a": slice("10.0.0.1"), "b": slice("10.0.1.1", "10.0.1.2"), "c": slice("10.0.2.1")}, nil)
	weights := alias.ServiceUnitNames
	if weights["shop/a"] != 256 || weights["shop/b"] != 128 || weights["shop/c"] != 0 || weights["shop/empty"] != 0 || alias.ActiveServiceUnits != 2 || alias.ActiveEndpoints != 3 {
		t.Errorf("weights are %v of %d services and %d endpoints", weights, alias.ActiveServiceUnits, alias.ActiveEndpoints)
	}
	route.Spec.To.Weight, route.Spec.AlternateBackends[0].Weight = ptr.To[int32](1), ptr.To[int32](256)
	alias, _ = buildConfig(route, map[string]*discoveryv1.EndpointSlice{"a": slice("10.0.0.1", "10.0.0.2", "10.0.0.3"), "b": slice("10.0.1.1")}, nil)
	if alias.ServiceUnitNames["shop/a"] != 1 {
		t.Errorf("an endpoint has the weight %d, want at least 1", alias.ServiceUnitNames["shop/a"])
	}
}

func TestIdleServiceUsesClusterAddress(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "172.30.0.9", Ports: []corev1.ServicePort{{Name: "web", Port: 80}}}}
	route := &routev1.Route{Spec: routev1.RouteSpec{To: routev1.RouteTargetReference{Name: "web"}}}
	_, state := buildConfig(route, nil, map[string]*corev1.Service{"web": service})
	if got := state.ServiceUnits["shop/web"].EndpointTable; len(got) != 0 {
		t.Errorf("a service without pods has the endpoints %v", got)
	}
	service.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{"idling.alpha.openshift.io/idled-at": "2018-01-01T00:00:00Z"}}
	_, state = buildConfig(route, nil, map[string]*corev1.Service{"web": service})
	if got := state.ServiceUnits["shop/web"].EndpointTable; len(got) != 1 || got[0].IP != "172.30.0.9" || got[0].Port != "80" || !got[0].NoHealthCheck {
		t.Errorf("an idled service has the endpoints %v", got)
	}
}

func TestRoutesOfProjectShareServers(t *testing.T) {
	var addresses []string
	for i := range 1000 {
		addresses = append(addresses, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
	}
	var routes []*routev1.Route
	add := func(project string, count int) {
		for range count {
			routes = append(routes, &routev1.Route{
				ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "r" + strconv.Itoa(len(routes))},
				Spec:       routev1.RouteSpec{To: routev1.RouteTargetReference{Name: "web"}},
			})
		}
	}
	b := Builder{Source: Source{
		Service: func(string, string) *corev1.Service { return nil },
		Slices: func(string, string) []*discoveryv1.EndpointSlice {
			return []*discoveryv1.EndpointSlice{slice(addresses...)}
		},
	}}
	servers := func() map[string]int {
		counts := map[string]int{}
		for key := range b.State().Aliases {
			alias := b.State().Aliases[key]
			counts[alias.Namespace] += alias.ActiveEndpoints
		}
		return counts
	}
	expect := func(changed int, want map[string]int) {
		t.Helper()
		if got := len(b.Routes(routes)); got != changed {
			t.Errorf("%d routes changed, want %d", got, changed)
		}
		if got := servers(); !maps.Equal(got, want) {
			t.Errorf("the numbers of servers are %v, want %v", got, want)
		}
	}
	add("shop", 1)
	add("evil", 8)
	expect(9, map[string]int{"shop": 1000, "evil": 8000})
	add("evil", 1) // each of this namespace's 9 routes gets a limit of 10000/16 servers
	expect(9, map[string]int{"shop": 1000, "evil": 9 * 625})
	add("evil", 7)
	expect(7, map[string]int{"shop": 1000, "evil": 10_000})
	add("evil", 1984)
	expect(2000, map[string]int{"shop": 1000, "evil": 20_000})
	routes = routes[:1]
	expect(2000, map[string]int{"shop": 1000})
}
