package vxlan

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

func TestConnectionsBetweenHostsAreDirect(t *testing.T) {
	onEachPath(t, connectionsBetweenHostsAreDirect)
}

func connectionsBetweenHostsAreDirect(t *testing.T, one, two podHost) {
	for _, from := range []podHost{one, two} {
		conn, err := from.dial(map[bool]podHost{true: two, false: one}[from.host == one.host].podAddress)
		if err != nil || !echoes(conn) {
			t.Fatalf("from the pod of host %s: %v", from.Name, err)
		}
	}
	one.inPod("ip", "address", "add", "10.128.1.99/32", "dev", "eth0")
	one.inPod("ip", "route", "replace", "default", "via", gateway(one.subnet).String(), "src", "10.128.1.99")
	if _, err := one.dial(two.podAddress); err == nil {
		t.Error("a packet with a forged source is delivered directly")
	}
}

func TestConnectionsToRoutedHostsAreNotDirect(t *testing.T) {
	one, two := newPodHosts(t)
	one.peers[two.subnet] = Peer{Address: two.host.address, Routed: true}
	one.ensure()
	for from, to := range map[*podHost]podHost{&one: two, &two: one} {
		if _, err := from.dial(to.podAddress); err == nil {
			t.Errorf("the pod of host %s opens a direct connection", from.Name)
		}
	}
}

func TestConnectionsNeedRights(t *testing.T) { onEachPath(t, connectionsNeedRights) }

func connectionsNeedRights(t *testing.T, one, two podHost) {
	for _, tt := range []struct {
		name     string
		one, two Rights
		opens    bool
	}{
		{"all", AllRights, AllRights, true},
		{"only the rights to open and to accept", RightOpen | RightKeepOpened, RightAccept | RightKeepAccepted, true},
		{"no right to open", AllRights &^ RightOpen, AllRights, false},
		{"no right to accept", AllRights, AllRights &^ RightAccept, false},
	} {
		one.connect(tt.one)
		two.connect(tt.two)
		if _, err := one.dial(two.podAddress); (err == nil) != tt.opens {
			t.Errorf("rights: %s: a connection opens: %v, want %t", tt.name, err, tt.opens)
		}
	}
}

func TestOpenConnectionsLoseTheirRights(t *testing.T) { onEachPath(t, openConnectionsLoseTheirRights) }

func openConnectionsLoseTheirRights(t *testing.T, one, two podHost) {
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pod   podHost
		right Rights
		keeps bool
	}{
		{one, RightKeepOpened, false}, {two, RightKeepAccepted, false},
		// In these cases, the restricted pod only sends replies, which require no rights.
		{one, RightKeepAccepted, true}, {two, RightKeepOpened, true}, {one, RightOpen, true}, {two, RightAccept, true},
	} {
		tt.pod.connect(AllRights &^ tt.right)
		if got := echoes(conn); got != tt.keeps {
			t.Errorf("host %s without right %b: the connection works: %t, want %t", tt.pod.Name, tt.right, got, tt.keeps)
		}
		tt.pod.connect(AllRights)
		eventually.True(t, "connection with all rights", func() bool { return echoes(conn) })
	}
	two.Do(t, func() error {
		return two.tunnel.Restrict(map[netip.Addr]Local{two.podAddress: {Device: podDevice}})
	})
	if echoes(conn) {
		t.Error("a restricted pod's connection works")
	}
}

// TestConnectionsOfLimitedPodsMoveToTheStack moves an open connection of a pod to the network
// stack. After that, the packets in both directions pass the host's rules.
func TestConnectionsOfLimitedPodsMoveToTheStack(t *testing.T) {
	onEachPath(t, connectionsOfLimitedPodsMoveToTheStack)
}

func connectionsOfLimitedPodsMoveToTheStack(t *testing.T, one, two podHost) {
	for _, tt := range []struct {
		limited, opener, other podHost
		move                   Rights
	}{{one, one, two, MoveOpened}, {one, two, one, MoveAccepted}} {
		one.connect(AllRights)
		conn, err := tt.opener.dial(tt.other.podAddress)
		if err != nil || !echoes(conn) {
			t.Fatal(err)
		}
		// Count only this connection's packets: packets of the previous connection might still pass
		// the network stack.
		port := conn.LocalAddr().(*net.TCPAddr).Port
		tt.limited.rules("add chain ip test forward { type filter hook forward priority 0; }",
			fmt.Sprintf("add rule ip test forward ip saddr %s tcp sport %d counter", tt.opener.podAddress, port),
			fmt.Sprintf("add rule ip test forward ip daddr %s tcp dport %d counter", tt.opener.podAddress, port))
		seen := func() int {
			chain := tt.limited.run("nft", "list", "chain", "ip", "test", "forward")
			return strings.Count(chain, "counter") - strings.Count(chain, "counter packets 0")
		}
		if !echoes(conn) || seen() != 0 {
			t.Errorf("the direct connection passes the stack:\n%s", tt.limited.run("nft", "list", "chain", "ip", "test", "forward"))
		}
		tt.limited.connect(tt.move)
		eventually.Equal(t, "directions in the stack", func() int {
			if !echoes(conn) {
				t.Error("the connection does not work")
			}
			return seen()
		}, 2)
		tt.limited.connect(AllRights) // the connection does not return to the direct path
		before := seen()
		if !echoes(conn) || before != 2 {
			t.Error("the connection ends after the limit is removed")
		}
		tt.limited.rules("add chain ip test forward { type filter hook forward priority 0; meta l4proto tcp drop; }")
	}
}

// TestProjectHasShareOfConnections simulates a project that has used up its share.
func TestProjectHasShareOfConnections(t *testing.T) {
	one, two := newPodHosts(t)
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	share := Local{}.share() // newPodHosts sets no project
	count := func() (count uint32) {
		if err := one.tunnel.programs.shares.Lookup(share, &count); err != nil {
			t.Error(err)
		}
		return count
	}
	if got := count(); got != 1 {
		t.Errorf("the project has %d connections, want 1", got)
	}
	if err := one.tunnel.programs.shares.Put(share, uint32(maxShare)); err != nil {
		t.Fatal(err)
	}
	if _, err := one.dial(two.podAddress); err == nil {
		t.Error("a connection beyond the share is direct")
	}
	if !echoes(conn) {
		t.Error("an open connection ends")
	}
	former := Local{Project: "of a pod that has been removed"}.share()
	if err := one.tunnel.programs.shares.Put(former, uint32(1)); err != nil {
		t.Fatal(err)
	}
	one.Do(t, func() error { return one.tunnel.Age() })
	if got := count(); got != 1 {
		t.Errorf("the project has %d connections after a recount, want 1", got)
	}
	var connections uint32
	if err := one.tunnel.programs.shares.Lookup(former, &connections); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("a project without pods has %d connections, %v", connections, err)
	}
	if _, err := one.dial(two.podAddress); err != nil {
		t.Errorf("a connection within the share: %v", err)
	}
}

// TestTranslatedConnectionsReturnThroughTheStack checks connections through a service. The host
// that opened such a connection must translate the responses.
func TestTranslatedConnectionsReturnThroughTheStack(t *testing.T) {
	onEachPath(t, translatedConnectionsReturnThroughTheStack)
}

func translatedConnectionsReturnThroughTheStack(t *testing.T, one, two podHost) {
	two.rules()
	one.rules("add chain ip test prerouting { type nat hook prerouting priority -100; ip daddr 172.30.0.1 dnat to " + two.podAddress.String() + "; }")
	conn, err := one.dial(netip.MustParseAddr("172.30.0.1"))
	if err != nil || !echoes(conn) {
		t.Fatalf("connection to the service: %v", err)
	}
	// The pod opens no more direct connections to this port. One of them could have the same source
	// port as the connection through the service.
	one.rules("add chain ip test forward { type filter hook forward priority 0; meta l4proto tcp drop; }")
	if _, err := one.dial(two.podAddress); err == nil {
		t.Error("a direct connection opens beside a connection through the service")
	}
}

func TestRestartedProcessKeepsConnections(t *testing.T) {
	onEachPath(t, restartedProcessKeepsConnections)
}

func restartedProcessKeepsConnections(t *testing.T, one, two podHost) {
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	for _, h := range []podHost{one, two} {
		h.tunnel.programs.close()
		if !echoes(conn) {
			t.Errorf("host %s: the connection ends with the process", h.Name)
		}
		h.tunnel = &Tunnel{}
		h.follow()
		h.ensure()
		if !echoes(conn) {
			t.Errorf("host %s: the connection ends when the process starts", h.Name)
		}
		h.Do(t, func() error {
			return h.tunnel.Restrict(map[netip.Addr]Local{h.podAddress: {Device: podDevice, Rights: AllRights}})
		})
		h.connect(AllRights)
		if !echoes(conn) {
			t.Errorf("host %s: the connection ends when its pod is connected again", h.Name)
		}
	}
	for name, prepare := range map[string]func(){
		"before it has programs": func() {},
		"with its own programs":  func() { two.follow(); two.ensure() },
	} {
		two.connect(AllRights)
		eventually.True(t, "connection with all rights", func() bool { return echoes(conn) })
		two.tunnel = &Tunnel{}
		prepare()
		two.Do(t, func() error {
			return two.tunnel.Restrict(map[netip.Addr]Local{two.podAddress: {Device: podDevice, Rights: AllRights &^ RightKeepAccepted}})
		})
		if echoes(conn) {
			t.Errorf("a new process does not restrict the pods of the previous process %s", name)
		}
		two.follow()
		two.ensure()
	}
}

// TestRestartSendsNoPacketsToTheStack sends packets through an open connection while the process
// starts. The last start fails, because the VXLAN device cannot have the requested MTU.
func TestRestartSendsNoPacketsToTheStack(t *testing.T) {
	onEachPath(t, restartSendsNoPacketsToTheStack)
}

func restartSendsNoPacketsToTheStack(t *testing.T, one, two podHost) {
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { _, err := io.Copy(io.Discard, conn); ended <- err }()
	go func() {
		for err := error(nil); err == nil; {
			_, err = conn.Write(make([]byte, 1024))
		}
		ended <- err
	}()
	for _, isLast := range []bool{false, false, false, true} {
		for _, h := range []podHost{one, two} {
			h.tunnel.programs.close()
			*h.tunnel = Tunnel{}
			h.follow()
			d, fails := h.device(), isLast && !h.absent
			if fails {
				d.MTU = 1 << 20
			}
			if err := h.Try(func() error { return h.tunnel.Ensure(d, h.peers) }); (err != nil) != fails {
				t.Fatalf("start with the MTU %d: %v", d.MTU, err)
			}
		}
	}
	conn.Close()
	for range cap(ended) {
		<-ended
	}
	for _, h := range []podHost{one, two} {
		if chain := h.run("nft", "list", "chain", "ip", "test", "forward"); !strings.Contains(chain, "counter packets 0") {
			t.Errorf("host %s: the stack gets packets of a direct connection:\n%s", h.Name, chain)
		}
	}
}

// TestOtherFiltersSeePacketsOfPods verifies that a tc filter that runs after the tunnel's program,
// such as a filter of package shaping, still receives the pods' packets.
func TestOtherFiltersSeePacketsOfPods(t *testing.T) {
	one, two := newPodHosts(t)
	one.run("tc", "filter", "add", "dev", podDevice, "ingress", "prio", "2", "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", "lo")
	if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
		t.Errorf("direct connection: %v", err)
	}
	one.connect(AllRights &^ RightOpen)
	if _, err := one.dial(two.podAddress); err == nil {
		t.Fatal("the pod opens a connection without the right")
	}
	if filters := one.run("tc", "-s", "filter", "show", "dev", podDevice, "ingress"); !regexp.MustCompile(`Sent [1-9]`).MatchString(filters) {
		t.Errorf("the filter has seen no packet:\n%s", filters)
	}
}

func TestNewPodGetsNoRepliesOfFormerPod(t *testing.T) { onEachPath(t, newPodGetsNoRepliesOfFormerPod) }

func newPodGetsNoRepliesOfFormerPod(t *testing.T, one, two podHost) {
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	if got := one.connections(); got != 1 {
		t.Errorf("there are %d connections, want 1", got)
	}
	one.run("ip", "link", "add", "other", "type", "veth", "peer", "name", "other-peer")
	one.Do(t, func() error {
		return one.tunnel.Connect(map[netip.Addr]Local{one.podAddress: {Device: "other", Rights: AllRights}})
	})
	if got := one.connections(); got != 0 {
		t.Errorf("the new pod has %d connections", got)
	}
}

func TestEndedConnectionsAreForgotten(t *testing.T) {
	one, two := newPodHosts(t)
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	open, err := one.dial(two.podAddress)
	if err != nil || !echoes(open) {
		t.Fatal(err)
	}
	conn.Close()
	flows := 0
	now, err := uptime()
	if err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "connections", func() int {
		one.Do(t, func() error {
			now += closedTimeout
			if err := one.tunnel.age(now); err != nil {
				return err
			}
			flows = 0
			return one.tunnel.programs.eachFlow(func(_, _ []byte) bool { flows++; return false })
		})
		return flows
	}, 1)
	if !echoes(open) {
		t.Error("an open connection is forgotten")
	}
}

// TestRemovedDeviceHasNoDirectConnections checks that a pod's packets take the path through the
// network stack if the node no longer uses VXLAN.
func TestRemovedDeviceHasNoDirectConnections(t *testing.T) {
	one, two := newPodHosts(t)
	if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	one.tunnel = &Tunnel{} // simulates a process that starts with other settings
	one.Do(t, func() error { return one.tunnel.Remove(device) })
	one.run("ip", "route", "replace", two.subnet.String(), "via", "192.0.1.1")
	one.rules("add chain ip test forward { type filter hook forward priority 0; meta l4proto tcp reject with tcp reset; }")
	if _, err := one.dial(two.podAddress); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("connection: %v", err)
	}
	one.follow()
	one.ensure()
	if got := one.connections(); got != 0 {
		t.Errorf("there are %d connections from before the removal", got)
	}
}

func TestDirectConnectionsStayInTheirNetwork(t *testing.T) {
	onEachPath(t, directConnectionsStayInTheirNetwork)
}

func directConnectionsStayInTheirNetwork(t *testing.T, one, two podHost) {
	for _, tt := range []struct {
		name string
		// one and two are the network IDs of the pods according to their own hosts. oneSeen and
		// twoSeen are the IDs according to the other host.
		one, two, oneSeen, twoSeen uint32
		arrives                    bool
	}{
		{"the same network", 12, 12, 12, 12, true},
		{"from the global network", 0, 12, 0, 12, true},
		{"to the global network", 12, 0, 12, 0, true},
		{"other networks", 12, 13, 12, 13, false},
		{"the sender's host sees another network", 12, 12, 12, 13, false},
		{"the receiver's host sees another network", 12, 12, 13, 12, false},
		{"the receiver's host is late", 12, 12, 0, 12, true},
	} {
		one.networks = Networks{Plugin: networkplugin.Multitenant, Pods: map[netip.Addr]uint32{one.podAddress: tt.one}, Remotes: map[netip.Addr]uint32{two.podAddress: tt.twoSeen}}
		two.networks = Networks{Plugin: networkplugin.Multitenant, Pods: map[netip.Addr]uint32{two.podAddress: tt.two}, Remotes: map[netip.Addr]uint32{one.podAddress: tt.oneSeen}}
		one.refresh()
		two.refresh()
		if _, err := one.dial(two.podAddress); (err == nil) != tt.arrives {
			t.Errorf("%s: connection: %v, want %t", tt.name, err, tt.arrives)
		}
	}
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	two.networks.Remotes = map[netip.Addr]uint32{}
	two.refresh()
	if echoes(conn) {
		t.Error("a connection works although the receiver's host does not know the sender's network")
	}
}
