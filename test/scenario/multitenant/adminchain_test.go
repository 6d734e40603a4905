package multitenant

import (
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// deny adds a rule to a host's chain for administrators, which drops packets to an address outside
// the cluster. It returns a function that removes the rule.
//
// Source: OpenShift 3.11 Cluster Administration, Using iptables Rules to Limit Access to External
// Resources.
func deny(t *testing.T, host *kit.Host, program, address string) (remove func()) {
	t.Helper()
	change := func(option string) {
		t.Helper()
		err := host.Do(func() error {
			output, err := exec.Command(program, option, "OPENSHIFT-ADMIN-OUTPUT-RULES", "-d", address, "-j", "DROP").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s %s: %w: %s", program, option, err, output)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	change("-A")
	isRemoved := false
	remove = func() {
		t.Helper()
		if !isRemoved {
			change("-D")
		}
		isRemoved = true
	}
	t.Cleanup(remove)
	return remove
}

// hostOf returns the address of a server without its port.
func hostOf(t *testing.T, server string) string {
	t.Helper()
	address, _, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// TestRulesOfTheAdministratorApplyOnTheirHost adds rules on hosts that have joined the cluster. A
// rule must apply to the pods of all projects on its host, and to no other pods.
func TestRulesOfTheAdministratorApplyOnTheirHost(t *testing.T) {
	s := sharedTenants(t)
	server, server6 := outside(t, s.Cluster), outside6(t, s.Cluster)
	for _, tenant := range []tenant{s.blue, s.red} {
		s.waitOutside(tenant, server, true)
		s.waitOutside(tenant, server6, true)
	}
	remove := deny(t, s.second, "iptables-nft", hostOf(t, server))
	deny(t, s.distant, "ip6tables-nft", hostOf(t, server6))
	for _, tenant := range []tenant{s.blue, s.red} {
		s.waitForSource(tenant, server, "", "far")
		s.waitForSource(tenant, server, s.Address.String(), "near")
		s.waitForSource(tenant, server, s.distant.Address.String(), distant)
		s.waitForSource(tenant, server6, "", distant)
		s.waitForSource(tenant, server6, s.second.Second.String(), "far")
	}
	s.reach(s.blue, s.blue, true) // the rules must not apply to connections between pods

	// The rules of the pod's host also apply if the packets leave the cluster at another host.
	one, first := s.InSegment(210), s.NodeName()
	t.Cleanup(func() { s.SetEgress("hostsubnet", first, "egressIPs") })
	s.SetEgress("hostsubnet", first, "egressIPs", one)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one)
	s.waitForSource(s.blue, server, one, "near", distant)
	s.waitForSource(s.blue, server, "", "far")
	remove()
	s.waitForSource(s.blue, server, one, "far")
}
