package multitenant

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
)

// watched contains streams that run while the cluster changes. All messages of the kept streams
// must arrive, and no messages of the forbidden streams may arrive.
type watched struct {
	tenants
	kept, forbidden []*stream
}

// start waits until the streams are in their expected states, and resets their counts.
func (w *watched) start() {
	for _, stream := range w.kept {
		stream.passes(w.red, true)
		stream.reset()
	}
	for _, stream := range w.forbidden {
		stream.passes(w.red, false)
		stream.received.Store(0)
	}
}

// check reports lost messages of the kept streams, and arrived messages of the forbidden streams.
func (w *watched) check(t *testing.T, change string) {
	t.Helper()
	for _, stream := range w.forbidden {
		stream.more(w.red, 100)
		if arrived := stream.received.Swap(0); arrived > 0 {
			t.Errorf("%s: %d messages of %s arrived", change, arrived, stream.name)
		}
	}
	for _, stream := range w.kept {
		if lost := stream.lost(w.red); lost > 0 {
			t.Errorf("%s: %d messages of %s were lost", change, lost, stream.name)
		}
		stream.reset()
	}
}

// onlyNear is a policy that accepts only connections from pods named "near", and from the other
// pods that it names, which do not exist.
const onlyNear = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s}
spec:
  podSelector: {matchLabels: {app: distant}}
  ingress: [{from: [{podSelector: {matchLabels: {app: near}}}, {podSelector: {matchLabels: {app: %[1]s}}}]}]
`

// oneDenied is a firewall with a rule for one address. Its other rules are for addresses that the
// test does not use.
const oneDenied = `
apiVersion: network.openshift.io/v1
kind: EgressNetworkPolicy
metadata: {name: default}
spec:
  egress:
  - {type: %[2]s, to: {cidrSelector: 203.0.113.0/24}}
  - {type: Deny, to: {cidrSelector: %[1]s/32}}
  - {type: %[2]s, to: {cidrSelector: 192.0.2.0/24}}
`

// newWatched starts the streams. The forbidden streams are open until newWatched creates a policy
// and a firewall that deny them.
func newWatched(t *testing.T) *watched {
	t.Helper()
	s := sharedTenants(t)
	machine := func(address netip.Addr) end {
		return end{"machine " + address.String(), func(f func() error) error { return f() }, address}
	}
	w := &watched{tenants: s}
	for _, network := range []string{"udp4", "tcp4"} {
		w.kept = append(w.kept,
			openStream(t, network, s.red.end("near"), s.red.end("far")),
			// The packets of this TCP connection bypass the kernel's network stack (see package
			// network/vxlan).
			openStream(t, network, s.red.end("far"), s.red.end(distant)),
			openStream(t, network, s.blue.end("near"), s.blue.end(distant)),
			openStream(t, network, s.blue.end("near"), machine(s.Gateway)),
		)
		w.forbidden = append(w.forbidden,
			openStream(t, network, s.blue.end("far"), s.blue.end(distant)),
			openStream(t, network, s.blue.end("near"), machine(s.Distant)),
		)
	}
	for _, stream := range w.forbidden {
		stream.passes(s.blue, true)
	}
	s.blue.Apply(fmt.Sprintf(onlyNear, "none"))
	s.blue.Apply(fmt.Sprintf(oneDenied, s.Distant, "Deny"))
	return w
}

// change is a change to the cluster that must not affect the streams.
type change struct {
	name  string
	apply func()
}

// changes returns changes to policies, networks and firewalls.
func (w *watched) changes(third string) []change {
	return []change{
		{"policies", func() {
			for _, other := range []string{"one", "two"} {
				w.blue.Apply(fmt.Sprintf(onlyNear, other))
			}
			w.OC("delete", "networkpolicy", "none")
			w.blue.Apply(fmt.Sprintf(onlyNear, "none"))
			w.OC("delete", "networkpolicy", "one", "two")
		}},
		{"labels of pods", func() {
			w.OC("label", "pod", "far", "color=green")
			w.OC("label", "pod", "far", "color-")
		}},
		{"networks of projects", func() {
			// Do not join the blue project, because a joined project with a firewall has no
			// external traffic.
			for range 3 {
				w.podNetwork("join-projects", "--to="+w.red.Namespace, third)
				w.podNetwork("make-projects-global", third)
				w.podNetwork("isolate-projects", third)
			}
		}},
		{"firewall", func() {
			for _, kind := range []string{"Allow", "Deny", "Allow"} {
				w.blue.Apply(fmt.Sprintf(oneDenied, w.Distant, kind))
			}
		}},
	}
}

// failures returns failures and restarts of the hosts' processes.
func (w *watched) failures(t *testing.T, program string) (list []change) {
	up := func(host *kit.Host, name string) {
		host.MustSlipway("up")
		w.waitReady(name)
	}
	for name, host := range map[string]*kit.Host{w.NodeName(): w.Cluster, distant: w.distant} {
		list = append(list, change{"kill -9 of the node process of " + name, func() {
			before := host.Status().PID("node")
			host.Kill("node")
			host.WaitRestart("node", before)
		}}, change{"restart of the node process of " + name, func() {
			before := host.Status().PID("node")
			host.Signal("node", syscall.SIGTERM)
			host.WaitRestart("node", before)
		}})
	}
	former := w.distant.Program
	return append(list, change{"kill -9 of the whole service", func() { w.distant.Kill("slipway"); up(w.distant, distant) }}, change{"upgrade", func() {
		w.distant.Kill("slipway")
		w.distant.Program = program
		up(w.distant, distant)
		t.Cleanup(func() {
			w.distant.Kill("slipway")
			w.distant.Program = former
			up(w.distant, distant)
		})
	}})
}

// TestChangesOpenNoWindow counts the messages of senders that never stop. During a change or
// failure, messages that are denied both before and after it must not arrive. Messages that are
// allowed both before and after it must not be lost.
func TestChangesOpenNoWindow(t *testing.T) {
	program, _ := kit.OtherVersion(t)
	w := newWatched(t)
	third := w.Namespace + "-third"
	w.createProject(t, third)
	networks := []*stream{newStream(t, w.red, "near", w.blue, "far"), newStream(t, w.red, distant, w.blue, "near")}
	always := w.forbidden
	w.forbidden = append(networks, always...)
	w.start()
	for _, change := range append(w.changes(third), w.failures(t, program)...) {
		change.apply()
		w.check(t, change.name)
	}

	// In the mode without network IDs, policies must still deny the same streams as before.
	w.forbidden = always
	w.setPlugin(t, networkplugin.Multitenant, networkplugin.NetworkPolicy)
	for _, stream := range networks {
		stream.passes(w.red, true)
	}
	w.check(t, "change from multitenant mode")
	w.setPlugin(t, networkplugin.NetworkPolicy, networkplugin.Multitenant)
	for _, stream := range networks {
		stream.passes(w.red, false)
	}
	w.check(t, "change to multitenant mode")
}

// TestEgressAddressMovesWithoutLeak checks the source addresses of a project's datagrams to a
// machine outside the cluster. Meanwhile, the project's egress address moves between hosts, and the
// hosts' processes fail.
func TestEgressAddressMovesWithoutLeak(t *testing.T) {
	s := sharedTenants(t)
	first, address := s.NodeName(), s.InSegment(207)
	t.Cleanup(func() {
		s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs")
		for _, host := range []string{first, second} {
			s.SetEgress("hostsubnet", host, "egressIPs")
		}
	})
	machine := end{"machine", func(f func() error) error { return f() }, s.Gateway}
	var streams []*stream
	for _, pod := range pods() {
		streams = append(streams, openStream(t, "udp4", s.blue.end(pod), machine))
	}
	s.SetEgress("hostsubnet", first, "egressIPs", address)
	s.SetEgress("netnamespace", s.blue.Namespace, "egressIPs", address)
	server := outside(t, s.Cluster)
	s.waitForSource(s.blue, server, address, pods()...)
	for _, stream := range streams {
		stream.passes(s.blue, true)
		stream.reset()
	}
	for _, change := range []change{
		{"move", func() {
			s.SetEgress("hostsubnet", first, "egressIPs")
			s.SetEgress("hostsubnet", second, "egressIPs", address)
		}},
		{"kill -9 of the host's node process", func() { s.second.Kill("node") }},
		{"kill -9 of another host's node process", func() { s.distant.Kill("node") }},
		{"move back", func() {
			s.SetEgress("hostsubnet", second, "egressIPs")
			s.SetEgress("hostsubnet", first, "egressIPs", address)
		}},
	} {
		change.apply()
		for _, stream := range streams {
			stream.passes(s.blue, true)
		}
		s.waitForSource(s.blue, server, address, pods()...)
	}
	for _, stream := range streams {
		stream.passes(s.blue, true)
		stream.mu.Lock()
		for source, count := range stream.sources {
			if source.String() != address {
				t.Errorf("%s: %d datagrams have the source address %s", stream.name, count, source)
			}
		}
		t.Logf("%s: %d datagrams were lost", stream.name, stream.missing)
		stream.mu.Unlock()
	}
	if events := s.OC("get", "events", "-n", "default"); strings.Contains(events, address+" belongs to several") {
		t.Errorf("the events are\n%s", events)
	}
}
