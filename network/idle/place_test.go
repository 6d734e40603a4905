package idle

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/idling"
)

// at is a place.
func at(address string, protocol corev1.Protocol) place {
	return place{netip.MustParseAddrPort(address), protocol}
}

func TestWhichAddressesAreHeld(t *testing.T) {
	services := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, service := range map[string]struct {
		since, address string
		protocol       corev1.Protocol
	}{
		"idle": {"2026-01-01T00:00:00Z", "172.30.0.1", ""}, "awake": {"", "172.30.0.2", corev1.ProtocolTCP},
		"headless": {"2026-01-01T00:00:00Z", "None", corev1.ProtocolTCP}, "datagrams": {"2026-01-01T00:00:00Z", "172.30.0.3", corev1.ProtocolUDP},
		"odd": {"yesterday", "172.30.0.4", corev1.ProtocolTCP}, "other": {"2026-01-01T00:00:00Z", "172.30.0.5", corev1.ProtocolSCTP},
	} {
		port := corev1.ServicePort{Name: "web", Port: 80, Protocol: service.protocol}
		if name == "idle" {
			port.NodePort = 30080
		}
		object, err := lean(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{idling.IdledAt: service.since, "other": "x"}},
			Spec: corev1.ServiceSpec{
				ClusterIP: service.address, Ports: []corev1.ServicePort{port}, ExternalIPs: []string{"192.0.2.1" + service.address[len(service.address)-1:], "::1"},
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
	held := idle(services)
	for where, name := range map[place]string{
		at("172.30.0.1:80", "TCP"): "idle", at("192.0.2.11:80", "TCP"): "idle", at("198.51.100.1:80", "TCP"): "idle", at("0.0.0.0:30080", "TCP"): "idle",
		at("172.30.0.3:80", "UDP"): "datagrams", at("192.0.2.13:80", "UDP"): "datagrams", at("198.51.100.1:80", "UDP"): "datagrams",
	} {
		if of := held[where]; of.service.Name != name || of.port != "web" || of.protocol != where.protocol {
			t.Errorf("at %v is %v", where, of)
		}
		delete(held, where)
	}
	if len(held) > 0 {
		t.Errorf("held are also %v", held)
	}
}

func TestPlacesAreHeldUntilThereAreEndpointsAndALittleLonger(t *testing.T) {
	where, now := at("172.30.0.1:80", "TCP"), time.Now()
	type step struct {
		after, wait time.Duration
		is          state
		held        int
	}
	for name, steps := range map[string][]step{
		"it wakes": {{0, pause, waking, 1}, {time.Minute, pause, waking, 1}, {time.Minute, grace, awake, 1}, {time.Minute + grace/2, grace / 2, waking, 1}, {time.Minute + grace, 0, awake, 0}},
		"never":    {{0, pause, waking, 1}, {maxWait - grace, grace, waking, 1}, {maxWait, 0, waking, 0}},
		"deleted":  {{0, pause, waking, 1}, {time.Second, 0, gone, 0}},
	} {
		written, leaving := map[place]target{where: {}}, map[place]time.Time{}
		for _, step := range steps {
			next := map[place]target{}
			wait := remain(next, written, leaving, now.Add(step.after), func(target) state { return step.is })
			if wait != step.wait || len(next) != step.held {
				t.Errorf("%s, after %s: %d are held, look again after %s", name, step.after, len(next), wait)
			}
		}
		if len(leaving) != 0 {
			t.Errorf("%s: leaving are %v", name, leaving)
		}
	}
}

func TestAServiceHasNotAllPlaces(t *testing.T) {
	s := seats{of: map[cache.ObjectName]int{}}
	one, other, third := cache.NewObjectName("shop", "one"), cache.NewObjectName("shop", "other"), cache.NewObjectName("shop", "third")
	fill := func(service cache.ObjectName) (taken int) {
		for s.take(service) {
			taken++
		}
		return taken
	}
	if a, b, c := fill(one), fill(other), fill(third); a != maxOfService || b != maxHeld-maxOfService || c != 0 {
		t.Errorf("%d, %d and %d are held", a, b, c)
	}
	s.leave(one)
	if !s.take(third) || s.take(third) {
		t.Error("not one place was free")
	}
}
