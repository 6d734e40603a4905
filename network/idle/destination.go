package idle

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/idling"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// destination contains the address, port and protocol of packets to a service. For node ports, the
// address is unspecified, which means all addresses of this host in the IP family.
type destination struct {
	netip.AddrPort
	protocol corev1.Protocol
}

// target is a service port.
type target struct {
	service cache.ObjectName
	// port is the name of the port. The service's endpoints have a port with the same name.
	port     string
	protocol corev1.Protocol
	// family is the IP family of the packets, and of the endpoints that receive them.
	family ipfamily.Family
}

// state is the state of a service that is no longer idle.
type state int

const (
	waking state = iota // the service has no endpoints yet
	awake
	absent // the service no longer exists
)

// idleDestinations returns the destinations of idle services.
func idleDestinations(services cache.Store) map[destination]target {
	destinations := map[destination]target{}
	for _, object := range services.List() {
		service := object.(*corev1.Service)
		if _, isIdle := idling.Since(service.Annotations); !isIdle {
			continue
		}
		for _, port := range service.Spec.Ports {
			protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
			if protocol == corev1.ProtocolSCTP {
				continue
			}
			for _, address := range addresses(service) {
				tgt := target{cache.MetaObjectToName(service), port.Name, protocol, ipfamily.Of(address)}
				destinations[destination{netip.AddrPortFrom(address, uint16(port.Port)), protocol}] = tgt
				if port.NodePort != 0 {
					destinations[destination{netip.AddrPortFrom(tgt.family.Unspecified(), uint16(port.NodePort)), protocol}] = tgt
				}
			}
		}
	}
	return destinations
}

// addresses returns a service's addresses, or nil if the service has no cluster IP. It omits
// addresses in IP families in which the service has no cluster IP, because the service proxy
// ignores them too.
func addresses(service *corev1.Service) (addrs []netip.Addr) {
	texts, families := slices.Concat(service.Spec.ClusterIPs, service.Spec.ExternalIPs), map[ipfamily.Family]bool{}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		texts = append(texts, ingress.IP)
	}
	for i, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil || address.IsUnspecified() {
			continue
		}
		if i < len(service.Spec.ClusterIPs) {
			families[ipfamily.Of(address)] = true
		}
		if families[ipfamily.Of(address)] {
			addrs = append(addrs, address)
		}
	}
	return addrs
}

// keepDraining adds the destinations of services that are no longer idle to desired. It keeps
// adding a destination until the service has had endpoints for drainPeriod, is deleted, or has no
// endpoints after holdTimeout. It returns the delay until the next call, or 0 if no further call is
// needed.
func keepDraining(desired, current map[destination]target, draining map[destination]time.Time, now time.Time, stateOf func(target) state) (delay time.Duration) {
	for dest, tgt := range current {
		if _, ok := desired[dest]; ok {
			delete(draining, dest)
			continue
		}
		if draining[dest].IsZero() {
			draining[dest] = now.Add(holdTimeout)
		}
		remaining, st := draining[dest].Sub(now), awake
		if remaining > drainPeriod {
			st = stateOf(tgt)
		}
		switch {
		case st == absent || remaining <= 0:
			delete(draining, dest)
			continue
		case st == awake:
			remaining = min(remaining, drainPeriod)
			draining[dest] = now.Add(remaining)
		default:
			remaining = min(remaining-drainPeriod, retryDelay)
		}
		desired[dest] = tgt
		if delay == 0 || remaining < delay {
			delay = remaining
		}
	}
	return delay
}

func sameKeys(a, b map[destination]target) bool {
	for dest := range a {
		if _, ok := b[dest]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// trim removes unused fields from a cached object.
func trim(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, UID: service.UID, ResourceVersion: service.ResourceVersion}}
	if since := service.Annotations[idling.IdledAt]; since != "" {
		trimmed.Annotations = map[string]string{idling.IdledAt: since}
		trimmed.Spec = corev1.ServiceSpec{ClusterIPs: service.Spec.ClusterIPs, ExternalIPs: service.Spec.ExternalIPs, Ports: service.Spec.Ports}
		trimmed.Status = service.Status
	}
	return trimmed, nil
}
