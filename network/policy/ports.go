package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// portRange is an inclusive range of port numbers.
type portRange struct{ first, last int32 }

var allPorts = portRange{0, 65535}

func (r portRange) String() string {
	if r.first == r.last {
		return fmt.Sprint(r.first)
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

// ports returns the matches for a rule's ports. A packet is sent to one of the ports if it
// satisfies one of the matches. For a rule without ports, ports returns one match that every packet
// satisfies, regardless of its protocol. All named ports are in one set, which contains, for each
// destination, the number of the port with that name.
func (c *compiler) ports(destinations []pod, ports []networkingv1.NetworkPolicyPort) (matches []string) {
	if len(ports) == 0 {
		return []string{""}
	}
	c.budget.spend(len(ports))
	ranges, names := map[string][]portRange{}, map[portName]bool{}
	for _, port := range ports {
		protocol := protocolOf(port.Protocol)
		switch {
		case port.Port == nil:
			ranges[protocol] = append(ranges[protocol], allPorts)
		case port.Port.Type == intstr.String:
			names[portName{protocol, port.Port.StrVal}] = true
		case port.EndPort != nil:
			ranges[protocol] = append(ranges[protocol], portRange{port.Port.IntVal, *port.EndPort})
		default:
			ranges[protocol] = append(ranges[protocol], portRange{port.Port.IntVal, port.Port.IntVal})
		}
	}
	if len(names) > 0 {
		matches = append(matches, c.family.Header()+" daddr . meta l4proto . th dport @"+c.portSet(destinations, names))
	}
	for _, protocol := range sortedKeys(ranges) {
		merged := merge(ranges[protocol])
		if merged[0] == allPorts {
			matches = append(matches, "meta l4proto "+protocol)
			continue
		}
		var texts []string
		for _, r := range merged {
			texts = append(texts, r.String())
		}
		matches = append(matches, fmt.Sprintf("%s dport { %s }", protocol, strings.Join(texts, ", ")))
	}
	return matches
}

// portName is a port name with a protocol.
type portName struct{ protocol, name string }

func protocolOf(protocol *corev1.Protocol) string {
	if protocol == nil || *protocol == "" {
		return "tcp"
	}
	return strings.ToLower(string(*protocol))
}

// merge joins ranges that overlap or are adjacent.
func merge(ranges []portRange) (result []portRange) {
	slices.SortFunc(ranges, func(a, b portRange) int { return cmp.Compare(a.first, b.first) })
	for _, r := range ranges {
		if last := len(result) - 1; last >= 0 && r.first <= result[last].last+1 {
			result[last].last = max(result[last].last, r.last)
			continue
		}
		result = append(result, r)
	}
	return result
}

// portSet returns the name of a set. The set contains the destinations' ports that have one of the
// given names.
func (c *compiler) portSet(destinations []pod, names map[portName]bool) string {
	key := []string{""}
	if len(destinations) < len(c.pods) {
		key[0] = destinations[0].namespace // all destinations are in one project
	}
	for name := range names {
		key = append(key, name.protocol+" "+name.name)
	}
	slices.Sort(key[1:])
	return c.share("ports-"+hash(key...), func() measuredSet {
		result := measuredSet{set: set{kind: c.family.Type() + " . inet_proto . inet_service", comment: "named ports", elements: map[string]bool{}}}
		for _, p := range destinations {
			result.work++
			for name, number := range p.ports {
				if names[name] {
					result.elements[fmt.Sprintf("%s . %s . %d", p.address, name.protocol, number)] = true
				}
			}
		}
		return result
	})
}

// namedPorts returns the number of each named port. As in Services, the first container that
// defines the name takes precedence.
func namedPorts(containers []corev1.Container) map[portName]int32 {
	var result map[portName]int32
	for _, container := range containers {
		for _, port := range container.Ports {
			name := portName{protocolOf(&port.Protocol), port.Name}
			if _, exists := result[name]; exists || port.Name == "" {
				continue
			}
			if result == nil {
				result = map[portName]int32{}
			}
			result[name] = port.ContainerPort
		}
	}
	return result
}
