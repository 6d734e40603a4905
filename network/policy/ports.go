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

// portRange is a range of port numbers; both ends are included.
type portRange struct{ first, last int32 }

var allPorts = portRange{0, 65535}

func (r portRange) String() string {
	if r.first == r.last {
		return fmt.Sprint(r.first)
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

// ports returns the matches of a rule's ports. A packet that satisfies one of them is to one of the
// ports. A rule without ports has one match that every packet satisfies, of any protocol.
func (c *compiler) ports(ports []networkingv1.NetworkPolicyPort) (matches []string) {
	if len(ports) == 0 {
		return []string{""}
	}
	ranges := map[string][]portRange{}
	for _, port := range ports {
		protocol := protocolOf(port.Protocol)
		switch {
		case port.Port == nil:
			ranges[protocol] = append(ranges[protocol], allPorts)
		case port.Port.Type == intstr.String:
			matches = append(matches, fmt.Sprintf("ip daddr . %s dport @%s", protocol, c.portSet(protocol, port.Port.StrVal)))
		case port.EndPort != nil:
			ranges[protocol] = append(ranges[protocol], portRange{port.Port.IntVal, *port.EndPort})
		default:
			ranges[protocol] = append(ranges[protocol], portRange{port.Port.IntVal, port.Port.IntVal})
		}
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

func protocolOf(protocol *corev1.Protocol) string {
	if protocol == nil || *protocol == "" {
		return "tcp"
	}
	return strings.ToLower(string(*protocol))
}

// merge joins ranges that overlap or touch.
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

// portSet returns the name of the set of all pods' ports with a name. A named port of a policy
// means the port of the destination, so one set serves the rules of both directions.
func (c *compiler) portSet(protocol, name string) string {
	setName := "ports-" + protocol + "-" + name
	if _, exists := c.result.sets[setName]; exists {
		return setName
	}
	elements := map[string]bool{}
	for _, p := range c.pods {
		for _, port := range p.ports {
			if port.Name == name && protocolOf(&port.Protocol) == protocol {
				elements[fmt.Sprintf("%s . %d", p.address, port.ContainerPort)] = true
			}
		}
	}
	c.result.sets[setName] = set{kind: "ipv4_addr . inet_service", comment: "named ports", elements: elements}
	return setName
}
