package ingressip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// loadBalancer returns a service of type LoadBalancer that was created age hours ago.
func loadBalancer(name string, age int, address string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(age) * time.Hour)),
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	if address != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
	return s
}

// cluster contains services and runs the component with the pool 172.29.0.0/30, which has two
// usable addresses.
type cluster struct {
	*testing.T
	client *fake.Clientset
}

func run(t *testing.T, services ...*corev1.Service) cluster {
	c := cluster{t, fake.NewClientset()}
	for _, service := range services {
		c.add(service)
	}
	deps := &controller.Deps{Kube: c.client}
	deps.Init()
	componenttest.Run(t, deps.Run)
	componenttest.Run(t, (&Addresses{Deps: deps, Network: netip.MustParsePrefix("172.29.0.0/30")}).Run)
	return c
}

func (c cluster) add(service *corev1.Service) {
	c.Helper()
	if _, err := c.client.CoreV1().Services("shop").Create(c.Context(), service, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

// waitForAddresses waits until a service has the expected address and external IPs.
func (c cluster) waitForAddresses(name, want string) {
	c.Helper()
	eventually.Equal(c, "addresses of "+name, func() string {
		service, err := c.client.CoreV1().Services("shop").Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(ingressAddress(service), service.Spec.ExternalIPs)
	}, want)
}

// waitForEvent waits until a service has an event with the given reason.
func (c cluster) waitForEvent(name, reason string) {
	c.Helper()
	eventually.True(c, "event "+reason+" of "+name, func() bool {
		events, err := c.client.CoreV1().Events("shop").List(c.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.InvolvedObject.Name == name && strings.Contains(e.Message, "172.29.0.0/30")
		})
	})
}

func TestAllocateUntilPoolIsFull(t *testing.T) {
	c := run(t)
	selection := loadBalancer("chosen", 1, "")
	selection.Spec.LoadBalancerIP, selection.Spec.ExternalIPs = "172.29.0.2", []string{"192.0.2.1"}
	c.add(selection)
	c.waitForAddresses("chosen", "172.29.0.2 [192.0.2.1 172.29.0.2]")
	c.add(loadBalancer("any", 1, ""))
	c.waitForAddresses("any", "172.29.0.1 [172.29.0.1]")
	other := loadBalancer("late", 1, "")
	other.Spec.LoadBalancerIP = "somewhere"
	c.add(other)
	c.waitForEvent("late", RangeFull)

	service, err := c.client.CoreV1().Services("shop").Get(t.Context(), "chosen", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	service.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err := c.client.CoreV1().Services("shop").Update(t.Context(), service, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitForAddresses("chosen", "invalid IP [192.0.2.1]")
	c.waitForAddresses("late", "172.29.0.2 [172.29.0.2]")

	c.add(loadBalancer("last", 1, ""))
	c.waitForEvent("last", RangeFull)
	if err := c.client.CoreV1().Services("shop").Delete(t.Context(), "any", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.waitForAddresses("last", "172.29.0.1 [172.29.0.1]")
}

func TestExistingAddressesAreKept(t *testing.T) {
	other, class := loadBalancer("other", 1, "172.29.0.1"), "example.com/other"
	other.Spec.LoadBalancerClass, other.Spec.ExternalIPs = &class, []string{"172.29.0.1"}
	c := run(t, loadBalancer("a-new", 0, ""), loadBalancer("second", 2, "172.29.0.2"), loadBalancer("first", 9, "172.29.0.2"), other)
	c.waitForAddresses("first", "172.29.0.2 [172.29.0.2]")
	c.waitForEvent("second", Reallocated)
	eventually.True(t, "one of the two other services has the second address", func() bool {
		count := 0
		for _, name := range []string{"a-new", "second"} {
			service, err := c.client.CoreV1().Services("shop").Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && slices.Equal(service.Spec.ExternalIPs, []string{"172.29.0.1"}) {
				count++
			}
		}
		return count == 1
	})
	c.waitForAddresses("other", "172.29.0.1 [172.29.0.1]") // the previous controller's address is kept
}

func TestReleasedAddressIsReusedLast(t *testing.T) {
	p := newPool(netip.MustParsePrefix("172.29.0.0/29"))
	key := func(name string) controller.Key { return controller.Key{Namespace: "shop", Name: name} }
	for i, want := range []string{"172.29.0.1", "172.29.0.2", "172.29.0.3", "172.29.0.4", "172.29.0.5", "172.29.0.6", "172.29.0.1"} {
		if got := p.allocate(key("a"), netip.Addr{}); got.String() != want {
			t.Errorf("address %d: got %s, want %s", i, got, want)
		}
		p.release(key("a"))
	}
	if len(p.owners)+len(p.addresses)+len(p.waiting) > 0 {
		t.Errorf("left over: %v, %v, %v", p.owners, p.addresses, p.waiting)
	}
}
