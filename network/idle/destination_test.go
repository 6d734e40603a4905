package idle

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/idling"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// at returns a destination with the given address and protocol.
func at(address string, protocol corev1.Protocol) destination {
	return destination{netip.MustParseAddrPort(address), protocol}
}

func TestIdleDestinations(t *testing.T) {
	services := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, service := range map[string]struct {
		since, address string
		protocol       corev1.Protocol
		second         []string
	}{
		"idle": {"2026-01-01T00:00:00Z", "172.30.0.1", "", []string{"fd02::1"}}, "awake": {"", "172.30.0.2", corev1.ProtocolTCP, nil},
		"headless": {"2026-01-01T00:00:00Z", "None", corev1.ProtocolTCP, nil}, "datagrams": {"2026-01-01T00:00:00Z", "172.30.0.3", corev1.ProtocolUDP, nil},
		"odd": {"yesterday", "172.30.0.4", corev1.ProtocolTCP, nil}, "other": {"2026-01-01T00:00:00Z", "172.30.0.5", corev1.ProtocolSCTP, nil},
	} {
		port := corev1.ServicePort{Name: "web", Port: 80, Protocol: service.protocol}
		if name == "idle" {
			port.NodePort = 30080
		}
		object, err := trim(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{idling.IdledAt: service.since, "other": "x"}},
			Spec: corev1.ServiceSpec{
				ClusterIPs: append([]string{service.address}, service.second...), Ports: []corev1.ServicePort{port},
				ExternalIPs: []string{"192.0.2.1" + service.address[len(service.address)-1:], "2001:db8::1"},
			},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}, {Hostname: "x"}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := services.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	holders := idleDestinations(services)
	for dest, name := range map[destination]string{
		at("172.30.0.1:80", "TCP"): "idle", at("192.0.2.11:80", "TCP"): "idle", at("198.51.100.1:80", "TCP"): "idle", at("0.0.0.0:30080", "TCP"): "idle",
		at("[fd02::1]:80", "TCP"): "idle", at("[2001:db8::1]:80", "TCP"): "idle", at("[::]:30080", "TCP"): "idle",
		at("172.30.0.3:80", "UDP"): "datagrams", at("192.0.2.13:80", "UDP"): "datagrams", at("198.51.100.1:80", "UDP"): "datagrams",
	} {
		if tgt := holders[dest]; tgt.service.Name != name || tgt.port != "web" || tgt.protocol != dest.protocol || tgt.family != ipfamily.Of(dest.Addr()) {
			t.Errorf("%v: got %v", dest, tgt)
		}
		delete(holders, dest)
	}
	if len(holders) > 0 {
		t.Errorf("also held: %v", holders)
	}
}

func TestKeepDraining(t *testing.T) {
	dest, now := at("172.30.0.1:80", "TCP"), time.Now()
	type step struct {
		after, wait  time.Duration
		is           state
		wantDraining int
	}
	for name, steps := range map[string][]step{
		"wakes":   {{0, retryDelay, waking, 1}, {time.Minute, retryDelay, waking, 1}, {time.Minute, drainPeriod, awake, 1}, {time.Minute + drainPeriod/2, drainPeriod / 2, waking, 1}, {time.Minute + drainPeriod, 0, awake, 0}},
		"never":   {{0, retryDelay, waking, 1}, {holdTimeout - drainPeriod, drainPeriod, waking, 1}, {holdTimeout, 0, waking, 0}},
		"deleted": {{0, retryDelay, waking, 1}, {time.Second, 0, absent, 0}},
	} {
		current, leaving := map[destination]target{dest: {}}, map[destination]time.Time{}
		for _, step := range steps {
			next := map[destination]target{}
			wait := keepDraining(next, current, leaving, now.Add(step.after), func(target) state { return step.is })
			if wait != step.wait || len(next) != step.wantDraining {
				t.Errorf("%s, after %s: %d held, next check after %s", name, step.after, len(next), wait)
			}
		}
		if len(leaving) != 0 {
			t.Errorf("%s: still draining: %v", name, leaving)
		}
	}
}

func TestConnectionLimitPerService(t *testing.T) {
	s := newConnLimit()
	name, other, third := cache.NewObjectName("shop", "one"), cache.NewObjectName("shop", "other"), cache.NewObjectName("shop", "third")
	fill := func(service cache.ObjectName) (count int) {
		for s.acquire(service) {
			count++
		}
		return count
	}
	if a, b, c := fill(name), fill(other), fill(third); a != maxPerService || b != maxConnections-maxPerService || c != 0 {
		t.Errorf("held %d, %d and %d", a, b, c)
	}
	s.release(name)
	if !s.acquire(third) || s.acquire(third) {
		t.Error("got no free connection, or more than one")
	}
}
