package multitenant

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// automatic waits until the first two hosts have the given numbers of automatic egress addresses.
func (s tenants) automatic(first, other int) {
	s.WaitFor(fmt.Sprintf("%d and %d addresses", first, other), func(context.Context) error {
		for host, want := range map[string]int{s.NodeName(): first, second: other} {
			addresses, err := s.TryOC("get", "hostsubnet", host, "-o", "jsonpath={.egressIPs[*]}")
			if err != nil || len(strings.Fields(addresses)) != want {
				return fmt.Errorf("host %s has %q, %w", host, addresses, err)
			}
		}
		return nil
	})
}

func TestEgressAddressesAreAssignedAndMove(t *testing.T) {
	s := sharedTenants(t)
	server, first := outside(t, s.Cluster), s.NodeName()
	one, two, other := s.InSegment(204), s.InSegment(205), s.InSegment(206)
	server6, six := outside6(t, s.Cluster), s.secondInSegment(204)
	t.Cleanup(func() {
		for _, host := range []string{first, second} {
			s.SetEgress("hostsubnet", host, "egressCIDRs")
		}
	})
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one)
	s.SetEgress("netnamespace", s.red.Namespace, "egressIPs", two)
	s.waitForSource(s.blue, server, "", "near") // no host has the address
	for _, host := range []string{first, second} {
		s.SetEgress("hostsubnet", host, "egressCIDRs", s.InSegment(204)+"/30", six+"/128")
	}
	leave := func() {
		t.Helper()
		s.waitForSource(s.blue, server, one, "near", "distant")
		s.waitForSource(s.red, server, two, "near", "distant")
	}
	s.automatic(1, 1)
	leave()
	s.waitForSource(s.red, server, two, "far")

	// All addresses must move to the remaining host, and one address must move back when the second
	// host returns.
	if err := s.second.SetConnected(false); err != nil {
		t.Fatal(err)
	}
	s.automatic(2, 0)
	leave()
	if err := s.second.SetConnected(true); err != nil {
		t.Fatal(err)
	}
	s.automatic(1, 1)
	leave()
	s.waitReady(second)

	// A project can have only one automatic address per IP family. With two addresses in a family,
	// it has no automatic address in that family.
	s.SetEgress("netnamespace", s.red.Namespace, "egressIPs", two, other, six)
	s.waitForSource(s.red, server, "", "near")
	s.waitForSource(s.red, server6, six, "near")
	s.WaitFor("event", func(context.Context) error {
		events, err := s.TryOC("get", "events", "-n", "default")
		if err == nil && !strings.Contains(events, "only to a project with a single egress IP in its IP family") {
			err = fmt.Errorf("the events are\n%s", events)
		}
		return err
	})

	// A project must release its address when its egressIPs are removed, and a host must release
	// its addresses when its range is removed.
	for _, project := range []tenant{s.blue, s.red} {
		s.SetEgress("netnamespace", project.Namespace, "egressIPs")
	}
	s.automatic(0, 0)
	s.waitForSource(s.blue, server, s.Address.String(), "near")
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one)
	s.waitForSource(s.blue, server, one, "near")
	for _, host := range []string{first, second} {
		s.SetEgress("hostsubnet", host, "egressCIDRs")
	}
	s.automatic(0, 0)
	s.waitForSource(s.blue, server, "", "near")
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs")
}
