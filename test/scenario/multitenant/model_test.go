package multitenant

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file contains a model of the pod network, which determines which packets arrive. The model
// is derived from the documents and the API objects, and uses none of the product's code.
//
// Both the sender's host and the receiver's host check a packet. The addresses that each host sees
// depend on two facts: which host translates the destination to a pod's address, and which host
// replaces the source address:
//
//	| destination                       | translated at | sender's host sees | receiver's sees |
//	|-----------------------------------|---------------|--------------------|-----------------|
//	| pod                               | no host       | pod to pod         | pod to pod      |
//	| service                           | sender's host | pod to pod         | pod to pod      |
//	| node port of the sender's host:   |               |                    |                 |
//	| - pod on the same host            | sender's host | pod to pod         | pod to pod      |
//	| - pod on another host             | sender's host | pod to pod         | host to pod     |
//	| node port of another host         | that host     | pod to host        | host to pod     |
//	| host, or machine outside          | no host       | pod to machine     | no check        |
//
// In multitenant mode, network IDs apply only to packets between two pods. Policies apply to all
// packets that a host forwards, so they do not apply to packets between a host and its own pods.
//
// Rules for incoming packets treat hosts as pods in the project "default".
//
// A sender outside the cluster can reach only node ports. The host with the node port sees the
// sender's address, and all other hosts see the address of the host with the node port.

// actor is a sender or a receiver: a pod, or a machine if the project is empty.
type actor struct {
	project string
	labels  labels.Set
	ports   []corev1.ContainerPort
	// host is the name of the machine on which the actor is: a node, or outsideHost.
	host string
	// addresses contains the actor's addresses, indexed by IP family. The first address is the
	// destination for other actors. Hosts also send from their other addresses, such as their
	// addresses in the pod network.
	addresses [2][]netip.Addr
}

func (a actor) isPod() bool { return a.project != "" }

// outsideHost is the name of the machine outside the cluster.
const outsideHost = "outside"

// path is the kind of a flow's destination.
type path int

const (
	toAddress path = iota
	toService
	toNodePort
)

func (p path) String() string { return [...]string{"address", "service", "node port"}[p] }

// flow describes a packet that opens a connection.
type flow struct {
	from, to actor
	path     path
	entry    actor // for a node port, the host whose address is the destination
	family   int   // index in actor.addresses
	protocol corev1.Protocol
	port     int32 // port of the receiver, or 0 for ICMP
}

// icmp is the protocol name of ICMP echo requests, which Kubernetes does not define.
const icmp corev1.Protocol = "ICMP"

// world is the part of the cluster's state that determines which packets arrive.
type world struct {
	// networks contains the projects' network IDs in multitenant mode. It is nil in other modes.
	networks map[string]string
	// projects contains the labels of all projects, including the project "default".
	projects map[string]labels.Set
	// policies contains the network policies that are in effect.
	policies []networkingv1.NetworkPolicy
	// hosts contains all machines, keyed by name.
	hosts map[string]actor
}

// arrives reports whether a flow's packet arrives at the receiver.
func (w world) arrives(f flow) bool {
	target, source := f.to, f.from
	switch {
	case f.path != toNodePort:
	case f.entry.host == f.from.host && f.to.host != f.from.host:
		source = f.entry
	case f.entry.host != f.from.host && f.to.host == f.entry.host:
		target, source = f.entry, w.hosts[f.from.host]
	case f.entry.host != f.from.host:
		target, source = f.entry, f.entry
	}
	return w.leaves(f, target) && w.enters(f, source)
}

// leaves reports whether the sender's host forwards the packet to target, the destination that this
// host sees.
func (w world) leaves(f flow, target actor) bool {
	if !f.from.isPod() || same(f.from, target) {
		return true
	}
	if target.isPod() && !w.connected(f.from.project, target.project) {
		return false
	}
	if !target.isPod() && target.host == f.from.host {
		return true // a host accepts all packets from its own pods
	}
	port := f.port
	if !target.isPod() {
		// The first address is the destination.
		target.addresses[f.family] = target.addresses[f.family][:1]
		if f.path == toNodePort {
			port = -1 // stands for any node port, because no policy in the test names a node port
		}
	}
	return w.permits(networkingv1.PolicyTypeEgress, f.from, target, target, f, port)
}

// enters reports whether the receiver's host forwards the packet from source, the sender that this
// host sees.
func (w world) enters(f flow, source actor) bool {
	if !f.to.isPod() || same(f.to, source) || source.host == f.to.host && !source.isPod() {
		return true
	}
	if source.isPod() && !w.connected(source.project, f.to.project) {
		return false
	}
	return w.permits(networkingv1.PolicyTypeIngress, f.to, source, f.to, f, f.port)
}

func same(a, b actor) bool {
	return a.isPod() && b.isPod() && a.addresses[0][0] == b.addresses[0][0]
}

// connected reports whether pods of two projects can exchange packets in multitenant mode.
func (w world) connected(a, b string) bool {
	const global = "0"
	return w.networks == nil || w.networks[a] == w.networks[b] || w.networks[a] == global || w.networks[b] == global
}

// permits reports whether a pod's policies permit a packet. peer is the packet's other end, and
// receiver is the end that has the port.
func (w world) permits(direction networkingv1.PolicyType, pod, peer, receiver actor, f flow, port int32) bool {
	isolated := false
	for _, policy := range w.policies {
		if policy.Namespace != pod.project || !slices.Contains(policy.Spec.PolicyTypes, direction) || !selects(&policy.Spec.PodSelector, pod.labels) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Egress {
			if direction == networkingv1.PolicyTypeEgress && w.anyPeer(direction, policy.Namespace, rule.To, peer, f.family) && anyPort(rule.Ports, receiver, f.protocol, port) {
				return true
			}
		}
		for _, rule := range policy.Spec.Ingress {
			if direction == networkingv1.PolicyTypeIngress && w.anyPeer(direction, policy.Namespace, rule.From, peer, f.family) && anyPort(rule.Ports, receiver, f.protocol, port) {
				return true
			}
		}
	}
	return !isolated
}

// anyPeer reports whether an actor is one of a rule's peers.
func (w world) anyPeer(direction networkingv1.PolicyType, project string, peers []networkingv1.NetworkPolicyPeer, a actor, family int) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return slices.ContainsFunc(a.addresses[family], func(address netip.Addr) bool {
				return contains(p.IPBlock.CIDR, address) && !slices.ContainsFunc(p.IPBlock.Except, func(cidr string) bool { return contains(cidr, address) })
			})
		}
		if !a.isPod() {
			return direction == networkingv1.PolicyTypeIngress && a.host != outsideHost && p.PodSelector == nil && selects(p.NamespaceSelector, w.projects[metav1.NamespaceDefault])
		}
		if p.NamespaceSelector == nil && a.project != project {
			return false
		}
		return (p.NamespaceSelector == nil || selects(p.NamespaceSelector, w.projects[a.project])) && (p.PodSelector == nil || selects(p.PodSelector, a.labels))
	})
}

// anyPort reports whether a port is one of a rule's ports. A rule without ports applies to all
// ports of all protocols.
func anyPort(ports []networkingv1.NetworkPolicyPort, receiver actor, protocol corev1.Protocol, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Protocol != nil && *p.Protocol != protocol || p.Protocol == nil && protocol != corev1.ProtocolTCP {
			return false
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return slices.ContainsFunc(receiver.ports, func(c corev1.ContainerPort) bool {
				return c.Name == p.Port.StrVal && c.Protocol == protocol && c.ContainerPort == port
			})
		case p.EndPort != nil:
			return p.Port.IntVal <= port && port <= *p.EndPort
		}
		return p.Port.IntVal == port
	})
}

func contains(cidr string, address netip.Addr) bool {
	return netip.MustParsePrefix(cidr).Contains(address)
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(set)
}
