package idle

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/idling"
)

// place is where packets to a service go to: an address and a port. The address 0.0.0.0 stands for those of this host, for node ports.
type place struct {
	netip.AddrPort
	protocol corev1.Protocol
}

// target is a port of a service.
type target struct {
	service cache.ObjectName
	// port is the port's name, by which endpoints have it too.
	port     string
	protocol corev1.Protocol
}

// state is how a service is that was idle.
type state int

const (
	waking state = iota // it has no endpoints yet
	awake
	gone // there is no such service
)

// idle are the places of idle services.
func idle(services cache.Store) map[place]target {
	found := map[place]target{}
	for _, object := range services.List() {
		service := object.(*corev1.Service)
		if _, is := idling.Since(service.Annotations); !is {
			continue
		}
		for _, port := range service.Spec.Ports {
			of := target{cache.MetaObjectToName(service), port.Name, port.Protocol}
			if of.protocol == "" {
				of.protocol = corev1.ProtocolTCP
			}
			if of.protocol == corev1.ProtocolSCTP {
				continue
			}
			for _, address := range addresses(service) {
				found[place{netip.AddrPortFrom(address, uint16(port.Port)), of.protocol}] = of
			}
			if port.NodePort != 0 {
				found[place{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port.NodePort)), of.protocol}] = of
			}
		}
	}
	return found
}

// addresses are those that a service has of its own. One without an address in the cluster has none.
func addresses(service *corev1.Service) (found []netip.Addr) {
	texts := append([]string{service.Spec.ClusterIP}, service.Spec.ExternalIPs...)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		texts = append(texts, ingress.IP)
	}
	for i, text := range texts {
		address, err := netip.ParseAddr(text)
		if i == 0 && err != nil {
			return nil
		}
		if err == nil && address.Is4() && !address.IsUnspecified() {
			found = append(found, address)
		}
	}
	return found
}

// remain adds to the wanted places those of services that are no longer idle: until they have endpoints, and a short while more. It returns the time
// until it must be asked again, 0 for never.
func remain(wanted, written map[place]target, leaving map[place]time.Time, now time.Time, is func(target) state) (wait time.Duration) {
	for where, of := range written {
		if _, still := wanted[where]; still {
			delete(leaving, where)
			continue
		}
		if leaving[where].IsZero() {
			leaving[where] = now.Add(maxWait)
		}
		left, how := leaving[where].Sub(now), awake
		if left > grace {
			how = is(of)
		}
		switch {
		case how == gone || left <= 0:
			delete(leaving, where)
			continue
		case how == awake:
			left = min(left, grace)
			leaving[where] = now.Add(left)
		default:
			left = min(left-grace, pause)
		}
		wanted[where] = of
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

func sameKeys(a, b map[place]target) bool {
	for where := range a {
		if _, known := b[where]; !known {
			return false
		}
	}
	return len(a) == len(b)
}

// lean drops what is not looked at of an object.
func lean(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	kept := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, UID: service.UID, ResourceVersion: service.ResourceVersion}}
	if since := service.Annotations[idling.IdledAt]; since != "" {
		kept.Annotations = map[string]string{idling.IdledAt: since}
		kept.Spec = corev1.ServiceSpec{ClusterIP: service.Spec.ClusterIP, ExternalIPs: service.Spec.ExternalIPs, Ports: service.Spec.Ports}
		kept.Status = service.Status
	}
	return kept, nil
}
