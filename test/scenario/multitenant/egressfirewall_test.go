package multitenant

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

const firewall = `
apiVersion: network.openshift.io/v1
kind: EgressNetworkPolicy
metadata: {name: default}
spec:
  egress: [{type: %s, to: {cidrSelector: "%s"}}]
`

// waitOutside waits until a tenant's pods on all hosts can connect to a server outside the cluster
// with their hosts' addresses. If open is false, it waits until none of the pods can connect.
func (s tenants) waitOutside(from tenant, server string, open bool) {
	if !open {
		s.waitForSource(from, server, "", pods()...)
		return
	}
	for pod, host := range map[string]*kit.Host{"near": s.Cluster, "far": s.second, distant: s.distant} {
		source := host.Address
		if strings.HasPrefix(server, "[") {
			source = host.Second
		}
		s.waitForSource(from, server, source.String(), pod)
	}
}

// TestEgressFirewallsApplyOnEveryHost checks IPv4 and IPv6 rules for pods on each host. It also
// checks how the firewall depends on the project's network and egress address.
func TestEgressFirewallsApplyOnEveryHost(t *testing.T) {
	s := sharedTenants(t)
	server, server6 := outside(t, s.Cluster), outside6(t, s.Cluster)
	set := func(kind, network string) {
		t.Helper()
		s.blue.Apply(fmt.Sprintf(firewall, kind, network))
	}
	s.waitOutside(s.blue, server, true)
	s.waitOutside(s.blue, server6, true)
	for _, rule := range []struct {
		network      string
		open4, open6 bool // whether each server can be reached while the rule denies the network
	}{
		{"::/0", true, false}, {s.Gateway.String() + "/32", false, true}, {"0.0.0.0/0", false, false},
	} {
		set("Deny", rule.network)
		s.waitOutside(s.blue, server, rule.open4)
		s.waitOutside(s.blue, server6, rule.open6)
	}
	s.reach(s.blue, s.blue, true) // the firewall must not apply to connections between pods
	s.waitOutside(s.red, server, true)
	result := s.Slipway("network", "trace", s.blue.Namespace+"/near", s.SecondGateway.String(), server6[strings.LastIndex(server6, ":")+1:])
	if !strings.Contains(result.Stdout, "Dropped by table ip6 ") {
		t.Errorf("slipway network trace:\n%s%s", result.Stdout, result.Stderr)
	}

	// A global project has no firewall. A joined project with a firewall has no external traffic.
	s.podNetwork("make-projects-global", s.blue.Namespace)
	s.waitOutside(s.blue, server, true)
	s.podNetwork("isolate-projects", s.blue.Namespace)
	s.waitOutside(s.blue, server, false)
	set("Allow", "0.0.0.0/0")
	s.waitOutside(s.blue, server, true)
	s.podNetwork("join-projects", "--to="+s.red.Namespace, s.blue.Namespace)
	s.waitOutside(s.blue, server, false)
	s.waitOutside(s.red, server, true) // the red project has no firewall of its own
	s.podNetwork("isolate-projects", s.blue.Namespace)
	s.waitOutside(s.blue, server, true)

	// The firewall must also apply to traffic with an egress address, on the pods' hosts.
	one := s.InSegment(209)
	t.Cleanup(func() { s.SetEgress("hostsubnet", second, "egressIPs") })
	s.SetEgress("hostsubnet", second, "egressIPs", one)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one)
	s.waitForSource(s.blue, server, one, pods()...)
	s.waitOutside(s.blue, server6, false) // the project has no IPv6 egress address
	set("Deny", s.Gateway.String()+"/32")
	s.waitOutside(s.blue, server, false)
	set("Allow", "0.0.0.0/0")
	s.waitForSource(s.blue, server, one, pods()...)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs")
	s.OC("delete", "egressnetworkpolicy", "default")
	s.waitOutside(s.blue, server6, true)
}
