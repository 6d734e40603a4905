package multitenant

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// outside starts a server outside the cluster that responds with the client's address. outside
// returns the server's address.
func outside(t *testing.T, c *kit.Cluster) string {
	t.Helper()
	server := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "caller", r.RemoteAddr)
	})}
	listener, err := net.Listen("tcp4", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = server.Serve(listener); close(done) }()
	t.Cleanup(func() { server.Close(); <-done })
	return listener.Addr().String()
}

// waitForSource waits until the requests of all given pods of a tenant reach a server outside the
// cluster with the given source address. If the address is empty, it waits until the pods cannot
// connect.
func (s tenants) waitForSource(from tenant, server, want string, pods ...string) {
	content := "caller " + want + ":"
	if strings.Contains(want, ":") {
		content = "caller [" + want + "]:"
	}
	var all []request
	for _, pod := range pods {
		all = append(all, request{from, pod, server, content})
	}
	s.WaitFor(fmt.Sprintf("pods %v of %s with the address %q", pods, from.Namespace, want), func(context.Context) error {
		for i, err := range sendAll(all) {
			isBlocked := err != nil && !strings.Contains(err.Error(), "response")
			if want == "" && isBlocked || want != "" && err == nil {
				continue
			}
			return fmt.Errorf("pod %s: %v", pods[i], err)
		}
		return nil
	})
}

// secondInSegment returns an IPv6 address in the network segment of the first two hosts.
func (s tenants) secondInSegment(last byte) string {
	octets := s.Second.As16()
	octets[14], octets[15] = 0xe, last
	return netip.AddrFrom16(octets).String()
}

func TestExternalTrafficOfProjectHasItsEgressAddress(t *testing.T) {
	s := sharedTenants(t)
	server, first := outside(t, s.Cluster), s.NodeName()
	one, two := s.InSegment(201), s.InSegment(202)
	t.Cleanup(func() {
		for _, host := range []string{first, second} {
			s.SetEgress("hostsubnet", host, "egressIPs")
		}
	})
	others := func() {
		t.Helper()
		s.waitForSource(s.red, server, s.Address.String(), "near")
		s.waitForSource(s.red, server, s.second.Address.String(), "far")
	}
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one)
	s.waitForSource(s.blue, server, "", pods()...) // no host has the address
	s.SetEgress("hostsubnet", second, "egressIPs", one)
	s.waitForSource(s.blue, server, one, pods()...)
	others()
	s.reach(s.blue, s.blue, true)
	s.WaitFetch("near", "http://far/", s.blue.marker("far"))

	// Neither two projects with the same address nor joined projects can use an egress address.
	s.SetEgress("netnamespace", s.red.Namespace, "egressIPs", one)
	s.waitForSource(s.blue, server, "", "near")
	s.waitForSource(s.red, server, "", "near")
	s.WaitFor("event", func(context.Context) error {
		events, err := s.TryOC("get", "events", "-n", "default")
		if err == nil && !strings.Contains(events, "egress IP "+one+" belongs to several projects") {
			err = fmt.Errorf("the events are\n%s", events)
		}
		return err
	})
	s.SetEgress("netnamespace", s.red.Namespace, "egressIPs")
	s.waitForSource(s.blue, server, one, "near")
	s.podNetwork("join-projects", "--to="+s.blue.Namespace, s.red.Namespace)
	s.waitForSource(s.blue, server, "", "near")
	s.podNetwork("isolate-projects", s.red.Namespace)
	s.waitForSource(s.blue, server, one, "near")

	// A project that has only an IPv6 egress address has no external IPv4 traffic.
	server6, six, seven := outside6(t, s.Cluster), s.secondInSegment(201), s.secondInSegment(202)
	s.waitForSource(s.blue, server6, "", pods()...)
	s.SetEgress("hostsubnet", second, "egressIPs", one, six)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", six)
	s.waitForSource(s.blue, server6, six, pods()...)
	s.waitForSource(s.blue, server, "", pods()...)
	s.waitForSource(s.red, server6, s.Second.String(), "near")

	// If the host with the first address fails, the project must use the next address in each IP
	// family.
	s.SetEgress("hostsubnet", first, "egressIPs", two, seven)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", one, two, six, seven)
	s.waitForSource(s.blue, server, one, "near", "distant")
	s.waitForSource(s.blue, server6, six, "near", "distant")
	if err := s.second.SetConnected(false); err != nil {
		t.Fatal(err)
	}
	s.waitForSource(s.blue, server, two, "near", "distant")
	s.waitForSource(s.blue, server6, seven, "near", "distant")
	if err := s.second.SetConnected(true); err != nil {
		t.Fatal(err)
	}
	s.waitForSource(s.blue, server, one, pods()...)
	s.waitForSource(s.blue, server6, six, pods()...)
	s.waitReady(second)

	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs")
	s.waitForSource(s.blue, server, s.Address.String(), "near")
	s.waitForSource(s.blue, server6, s.Second.String(), "near")
	others()
}
