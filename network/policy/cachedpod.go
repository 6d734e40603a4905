package policy

import (
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/podbandwidth"
)

// cachedPod contains the fields of a pod that policies depend on. The cache contains all pods of
// the cluster, and a corev1.Pod without any values is four times as large.
type cachedPod struct {
	metav1.ObjectMeta // only the fields that policies depend on

	node string
	// address is the first address in the pod's status, and second is the address in the other IP
	// family. They are invalid if the pod does not have them yet.
	address, second netip.Addr
	ports           map[portName]int32 // by name; nil if the pod has no named ports
	hostNetwork     bool
	ended           bool
}

// cachePod returns the fields of a pod that policies depend on.
func cachePod(p *corev1.Pod) *cachedPod {
	small := &cachedPod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels},
		node:       p.Spec.NodeName, hostNetwork: p.Spec.HostNetwork,
		ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		ports: namedPorts(slices.Concat(p.Spec.InitContainers, p.Spec.Containers)),
	}
	small.address, _ = netip.ParseAddr(p.Status.PodIP)
	for _, ip := range p.Status.PodIPs {
		if ip.IP != p.Status.PodIP {
			small.second, _ = netip.ParseAddr(ip.IP)
		}
	}
	for _, name := range []string{corev1.MirrorPodAnnotationKey, podbandwidth.Ingress, podbandwidth.Egress} {
		if value, exists := p.Annotations[name]; exists {
			metav1.SetMetaDataAnnotation(&small.ObjectMeta, name, value)
		}
	}
	return small
}

// isRemote reports whether the pod is on another node and has an address of the pod network.
func (p *cachedPod) isRemote(node string) bool { return !p.hostNetwork && !p.ended && p.node != node }

// addresses returns the pod's addresses.
func (p *cachedPod) addresses() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{p.address, p.second}, func(a netip.Addr) bool { return !a.IsValid() })
}

// describe returns the pod as part of a snapshot, without addresses.
func (p *cachedPod) describe(local bool) pod {
	return pod{namespace: p.Namespace, labels: p.Labels, ports: p.ports, local: local}
}

// equals reports whether two versions of a pod have the same effect on the rules.
func (p *cachedPod) equals(other *cachedPod) bool {
	same := *p
	same.ResourceVersion = other.ResourceVersion
	return reflect.DeepEqual(&same, other)
}
