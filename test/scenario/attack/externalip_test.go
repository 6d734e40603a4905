package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/kit"
)

// denied reports whether the API server rejected a request as invalid or forbidden.
func denied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// platformAddresses returns the addresses that a tenant must be able neither to claim nor to reach
// through a service, keyed by a description.
func (s *stage) platformAddresses() map[string]string {
	victim := s.OC("get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}")
	return map[string]string{
		"service": victim, "service, mapped": "::ffff:" + victim, "pod": "10.128.0.2", "pod, mapped": "::ffff:10.128.0.2", "pod with zeros": "010.128.0.02",
		"node": s.Address.String(), "node, mapped": "::ffff:" + s.Address.String(), "loopback": "127.0.0.1", "loopback, mapped": "::ffff:127.0.0.1", "loopback of IPv6": "::1",
		"metadata": "169.254.169.254", "link-local": "fe80::1", "DNS server": "169.254.20.10", "unspecified": "0.0.0.0", "multicast": "224.0.0.1", "metadata of Azure": "168.63.129.16",
	}
}

func TestServiceCannotUseForeignAddress(t *testing.T) {
	s := tenants(t)
	services := kit.CorePath(s.evil, "services")
	service := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {ports: [{port: 443}], %s}}", name, spec)
	}
	s.mallory.May("POST", services, service("plain", "selector: {app: web}"))
	addresses := s.platformAddresses()
	addresses["another host"] = "203.0.113.9" // the default configuration allows no external IPs
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			quoted := fmt.Sprintf("[%q]", address)
			s.mallory.Refused("POST", services+"?", service("thief", "externalIPs: "+quoted), "externalIPs", denied)
			s.mallory.Refused("PATCH", services+"/plain?", `{"spec":{"externalIPs":`+quoted+`}}`, "externalIPs", denied)
			s.mallory.MayNot("PATCH", services+"/plain/status?", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+address+`"}]}}}`, "cannot patch resource")
			if name == "another host" {
				return
			}
			s.mallory.Refused("POST", services+"?", service("thief", fmt.Sprintf("type: LoadBalancer, loadBalancerIP: %q", address)), "loadBalancerIP", denied)
			// Mallory must also not be able to act as a load balancer controller.
			s.Administrator().Refused("PATCH", services+"/plain/status?", `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"`+address+`"}]}}}`, "", denied)
		})
	}
}

func TestEndpointsCannotNameForeignAddress(t *testing.T) {
	s := tenants(t)
	endpoints := kit.CorePath(s.evil, "endpoints")
	object := func(name, address string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Endpoints, metadata: {name: %s}, subsets: [{addresses: [{ip: %q}], ports: [{port: 443}]}]}", name, address)
	}
	s.mallory.May("POST", endpoints, object("outside", "203.0.113.9"))
	for name, address := range s.platformAddresses() {
		t.Run(name, func(t *testing.T) {
			s.mallory.Refused("POST", endpoints+"?", object("thief", address), "", denied)
			s.mallory.Refused("PATCH", endpoints+"/outside?", fmt.Sprintf(`{"subsets":[{"addresses":[{"ip":%q}],"ports":[{"port":443}]}]}`, address), "", denied)
			slice := fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: thief}, addressType: IPv4, endpoints: [{addresses: [%q]}], ports: [{port: 443}]}", address)
			s.mallory.MayNot("POST", kit.GroupPath("discovery.k8s.io", s.evil, "endpointslices")+"?", slice, "cannot create resource")
		})
	}
	// Mallory must not be able to redirect a service that the platform created for pods to another
	// port.
	s.Administrator().May("POST", endpoints, object("kept", "10.128.0.2"))
	s.mallory.May("PATCH", endpoints+"/kept?", `{"metadata":{"annotations":{"note":"mine"}}}`)
	s.mallory.MayNot("PATCH", endpoints+"/kept?", `{"subsets":[{"addresses":[{"ip":"10.128.0.2"}],"ports":[{"port":10250}]}]}`, "endpoint address 10.128.0.2 is not allowed")
}

func TestAddressOfNewNodeCannotBeTaken(t *testing.T) {
	s := tenants(t)
	const address = "203.0.113.77"
	ctx := context.Background()
	nodes := s.Client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "attacked"}, Spec: corev1.NodeSpec{Unschedulable: true}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(ctx, node.Name, metav1.DeleteOptions{}) })
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, address)
	if _, err := nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	s.WaitFor("the node's address", func(context.Context) error {
		response, err := s.mallory.Try("POST", kit.CorePath(s.evil, "endpoints")+"?",
			"{apiVersion: v1, kind: Endpoints, metadata: {name: thief}, subsets: [{addresses: [{ip: "+address+"}], ports: [{port: 443}]}]}")
		if !apierrors.IsForbidden(err) || !strings.Contains(response, "the network of the nodes") {
			return fmt.Errorf("endpoints at the node: %v: %s", err, response)
		}
		return nil
	})
}
