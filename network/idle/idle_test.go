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

func TestWhichAddressesAreHeld(t *testing.T) {
	services := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, service := range map[string]struct {
		since, address string
		protocol       corev1.Protocol
	}{
		"idle": {"2026-01-01T00:00:00Z", "172.30.0.1", corev1.ProtocolTCP}, "awake": {"", "172.30.0.2", corev1.ProtocolTCP},
		"headless": {"2026-01-01T00:00:00Z", "None", corev1.ProtocolTCP}, "datagrams": {"2026-01-01T00:00:00Z", "172.30.0.3", corev1.ProtocolUDP},
		"odd": {"yesterday", "172.30.0.4", corev1.ProtocolTCP},
	} {
		object, err := lean(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{idling.IdledAt: service.since, "other": "x"}},
			Spec:       corev1.ServiceSpec{ClusterIP: service.address, Ports: []corev1.ServicePort{{Name: "web", Port: 80, Protocol: service.protocol}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := services.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	held := idle(services)
	if of := held[netip.MustParseAddrPort("172.30.0.1:80")]; len(held) != 1 || of.service.Name != "idle" || of.port != "web" {
		t.Errorf("held are %v", held)
	}
}

func TestAddressesAreHeldALittleLonger(t *testing.T) {
	address, now := netip.MustParseAddrPort("172.30.0.1:80"), time.Now()
	written, leaving := map[netip.AddrPort]target{address: {}}, map[netip.AddrPort]time.Time{}
	wanted := func() map[netip.AddrPort]target { return map[netip.AddrPort]target{} }
	for _, step := range []struct {
		after time.Duration
		wait  time.Duration
		held  int
	}{{0, grace, 1}, {grace / 2, grace / 2, 1}, {grace, 0, 0}} {
		next := wanted()
		if wait := remain(next, written, leaving, now.Add(step.after)); wait != step.wait || len(next) != step.held {
			t.Errorf("after %s: %d are held, look again after %s", step.after, len(next), wait)
		}
	}
	if len(leaving) != 0 {
		t.Errorf("leaving are %v", leaving)
	}
}
