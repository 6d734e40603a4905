package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// outside returns endpoint addresses for n hosts outside the cluster.
func outside(n int) (addresses []corev1.EndpointAddress) {
	for i := range n {
		addresses = append(addresses, corev1.EndpointAddress{IP: fmt.Sprintf("203.0.%d.%d", 113+i/250, 1+i%250)})
	}
	return addresses
}

// wide returns a service with the given number of ports, and its Endpoints with the given number of
// addresses.
func wide(t *testing.T, name string, addresses, ports int) (service, endpoints string) {
	t.Helper()
	s := corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	e := corev1.Endpoints{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Subsets = []corev1.EndpointSubset{{Addresses: outside(addresses)}}
	for i := range int32(ports) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: 1000 + i})
		e.Subsets[0].Ports = append(e.Subsets[0].Ports, corev1.EndpointPort{Name: fmt.Sprint("p", i), Port: 1000 + i})
	}
	return toJSON(t, s), toJSON(t, e)
}

func toJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPortsTimesEndpointsAreLimited creates objects with many combinations of ports and endpoints.
// Every node would keep these combinations in memory.
func TestPortsTimesEndpointsAreLimited(t *testing.T) {
	s := tenants(t)
	const reason = "combinations of port and endpoint"
	service, large := wide(t, "wide", 1000, 1000)
	s.mallory.May("POST", kit.CorePath(s.evil, "services"), service)
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "endpoints"), large, reason)
	_, small := wide(t, "wide", 10, 1000)
	s.mallory.May("POST", kit.CorePath(s.evil, "endpoints"), small)
	s.WaitFor("slice of the service", func(ctx context.Context) error {
		slices, err := s.Client.DiscoveryV1().EndpointSlices(s.evil).List(ctx, metav1.ListOptions{})
		if err == nil && len(slices.Items) == 0 {
			err = errors.New("the slice does not exist")
		}
		return err
	})
	// The project's limit must also apply to other authors of EndpointSlices, because the control
	// plane writes them, too, for example for services with many pods.
	slice := discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: metav1.ObjectMeta{Name: "further"}, AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range int32(50) {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprint("p", i)), Port: new(i + 1)})
	}
	for _, address := range outside(1000) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.IP}})
	}
	s.Administrator().MayNot("POST", kit.GroupPath(discoveryv1.GroupName, s.evil, "endpointslices"), toJSON(t, slice), reason)
	s.Administrator().May("POST", kit.GroupPath(discoveryv1.GroupName, s.shop, "endpointslices"), toJSON(t, slice))
}

// TestNodePortsAreLimited creates a service that would exceed the limit on a user's node ports.
func TestNodePortsAreLimited(t *testing.T) {
	s := tenants(t)
	service, _ := wide(t, "wide", 0, 600)
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "services"), strings.Replace(service, `"spec":{`, `"spec":{"type":"NodePort",`, 1), "node ports")
	s.alice.May("POST", kit.CorePath(s.shop, "services"), "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80}]}}")
}

// TestLoadBalancersAreLimited creates load balancers without node ports. Each load balancer uses an
// ingress address and a health check port.
func TestLoadBalancersAreLimited(t *testing.T) {
	s := tenants(t)
	const balancer = `{apiVersion: v1, kind: Service, metadata: {generateName: lb-}, spec: {type: LoadBalancer,
		allocateLoadBalancerNodePorts: false, externalTrafficPolicy: Local, ports: [{port: 80}]}}`
	for range 500 {
		s.mallory.May("POST", kit.CorePath(s.evil, "services"), balancer)
	}
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "services"), balancer, "node ports or load balancers")
	s.alice.May("POST", kit.CorePath(s.shop, "services"), balancer)
}
