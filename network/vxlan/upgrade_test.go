package vxlan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf/rlimit"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// TestLayoutsHaveNames fails if a field moves. In that case, rename the map, as adopt.go describes,
// unless the field was only appended to the value.
func TestLayoutsHaveNames(t *testing.T) {
	fields := map[string]string{
		"locals": fmt.Sprint("device ", localDevice, " rights ", localRights, " share ", localShare, ": ", RightOpen, RightKeepOpened, RightAccept, RightKeepAccepted, MoveOpened, MoveAccepted),
		"flows": fmt.Sprint("local ", flowLocal, " remote ", flowRemote, " ports ", flowRemotePort, flowLocalPort, " state ", flowState, " time ", flowTime,
			": ", openedHere, openedThere, viaStack, stateMask, closedHere, closedThere, closedReset, answered),
		"pairs": "time", "shares": "connections", "clock": "time",
	}
	got := map[string]string{}
	for _, m := range newPrograms().specs() {
		if text, isAdopted := fields[kindOf(m.spec.Name)]; isAdopted {
			got[m.spec.Name] = fmt.Sprintf("%d %d %s", m.spec.KeySize, m.spec.ValueSize, text)
		}
	}
	for name, want := range map[string]string{
		"locals": "4 12 device 0 rights 4 share 8: 1 2 4 8 16 32",
		"flows":  "12 8 local 0 remote 4 ports 8 10 state 0 time 4: 1 2 3 255 256 512 1024 2048",
		"pairs":  "12 8 time", "shares": "4 4 connections", "clock": "4 4 time",
	} {
		if got[name] != want {
			t.Errorf("map %q is %q, want %q", name, got[name], want)
		}
	}
}

// replaceFormer replaces a host's programs with programs of another version. change changes the
// maps of that version.
func (p podHost) replaceFormer(change func(m *mapSpec)) {
	p.t.Helper()
	former := newPrograms()
	former.localsOf, former.former = map[netip.Addr]attachedLocal{}, map[netip.Addr]bool{}
	specs := former.specs()
	for i := range specs {
		change(&specs[i])
	}
	if err := errors.Join(rlimit.RemoveMemlock(), former.createMaps(specs), former.loadPrograms()); err != nil {
		p.t.Fatal(err)
	}
	p.tunnel.programs.close()
	p.tunnel = &Tunnel{programs: former}
	p.follow()
	p.ensure()
	p.Do(p.t, func() error { return former.connectFormer(p.podAddress) })
}

// connectFormer gives a pod all rights, in maps of any size.
func (p *programs) connectFormer(pod netip.Addr) error {
	link, err := netlinksafe.LinkByName(podDevice)
	if err != nil {
		return err
	}
	share := Local{}.share()
	value := make([]byte, p.locals.ValueSize())
	for offset, field := range map[int]uint32{localDevice: uint32(link.Attrs().Index), localRights: uint32(AllRights), localShare: share} {
		binary.NativeEndian.PutUint32(value[offset:], field)
	}
	return errors.Join(p.shares.Put(share, make([]byte, p.shares.ValueSize())), p.locals.Put(pod.AsSlice(), value), attach(link, netlink.HANDLE_MIN_INGRESS, devicePriority, p.pod))
}

// upgrade replaces the process with a process of this version.
func (p podHost) upgrade() {
	p.t.Helper()
	p.tunnel.programs.close()
	*p.tunnel = Tunnel{}
	p.follow()
	p.ensure()
}

// TestConnectionsSurviveOtherSizesOfMaps upgrades from versions whose maps have fewer or more
// fields in their values.
func TestConnectionsSurviveOtherSizesOfMaps(t *testing.T) {
	for name, change := range map[string]func(m *mapSpec){
		"rights of a later version": func(m *mapSpec) {
			if m.spec.Name == localsMap {
				m.spec.ValueSize += 4
			}
		},
		"connections of a later version": func(m *mapSpec) {
			if m.spec.Name == flowsMap {
				m.spec.ValueSize += 8
			}
		},
		"all of a later version": enlarge,
	} {
		t.Run(name, func(t *testing.T) {
			one, two := newPodHosts(t)
			one.replaceFormer(change)
			two.replaceFormer(change)
			conn, err := one.dial(two.podAddress)
			if err != nil || !echoes(conn) {
				t.Fatal(err)
			}
			for _, h := range []podHost{one, two} {
				h.upgrade()
				if !echoes(conn) {
					t.Errorf("host %s: the connection ends when the process starts", h.Name)
				}
				h.connect(AllRights)
				if !echoes(conn) {
					t.Errorf("host %s: the connection ends when its pod is connected again", h.Name)
				}
			}
			if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
				t.Errorf("a new connection: %v", err)
			}
		})
	}
}

// TestRightsOfOtherLayoutsAreRevoked upgrades from a version whose maps a new process cannot use.
// The hosts' rules drop all packets that pass the network stack.
func TestRightsOfOtherLayoutsAreRevoked(t *testing.T) {
	rename := func(m *mapSpec) {
		if name := m.spec.Name; name == localsMap || name == flowsMap {
			m.spec.Name += "_0"
		}
	}
	for name, restart := range map[string]func(p podHost){
		"before the process has programs": func(p podHost) {
			p.tunnel = &Tunnel{}
			p.Do(p.t, func() error {
				return p.tunnel.Restrict(map[netip.Addr]Local{p.podAddress: {Device: podDevice, Rights: AllRights}})
			})
		},
		"when the process has programs": func(p podHost) { p.upgrade() },
	} {
		t.Run(name, func(t *testing.T) {
			one, two := newPodHosts(t)
			two.replaceFormer(rename)
			conn, err := one.dial(two.podAddress)
			if err != nil || !echoes(conn) {
				t.Fatal(err)
			}
			restart(two)
			if echoes(conn) {
				t.Error("the connection bypasses the rules although nobody can restrict it")
			}
			two.follow()
			two.ensure()
			two.connect(AllRights)
			eventually.True(t, "a new connection", func() bool {
				conn, err := one.dial(two.podAddress)
				return err == nil && echoes(conn)
			})
		})
	}
}

// enlarge increases the value size of all maps that a new process continues to use, as a later
// version would.
func enlarge(m *mapSpec) {
	if kind := m.spec.Name; kind == localsMap || kind == flowsMap || kind == "pairs" || kind == "shares" {
		m.spec.ValueSize += 8
	}
}

// TestRestrictedPodsUseFormerPrograms restricts a pod whose device still has the program of another
// version.
func TestRestrictedPodsUseFormerPrograms(t *testing.T) {
	onEachPath(t, restrictedPodsUseFormerPrograms)
}

func restrictedPodsUseFormerPrograms(t *testing.T, one, two podHost) {
	for _, tt := range []struct {
		name    string
		restart func()
	}{
		{"when the process has programs", one.upgrade},
		{"after a process that ended before it connected pods", func() {
			one.upgrade()
			one.tunnel.programs.close()
			*one.tunnel = Tunnel{}
			one.follow()
		}},
	} {
		one.replaceFormer(enlarge)
		conn, err := one.dial(two.podAddress)
		if err != nil || !echoes(conn) {
			t.Fatal(err)
		}
		tt.restart()
		one.Do(t, func() error {
			return one.tunnel.Restrict(map[netip.Addr]Local{one.podAddress: {Device: podDevice, Rights: AllRights &^ RightKeepOpened}})
		})
		if echoes(conn) {
			t.Errorf("%s: the restricted pod's connection works", tt.name)
		}
		one.ensure()
		one.connect(AllRights)
		eventually.True(t, "connection with all rights", func() bool { return echoes(conn) })
	}
}

// TestNewPodGetsNoCopiedConnections replaces a pod during an upgrade.
func TestNewPodGetsNoCopiedConnections(t *testing.T) {
	one, two := newPodHosts(t)
	one.replaceFormer(enlarge)
	conn, err := one.dial(two.podAddress)
	if err != nil || !echoes(conn) {
		t.Fatal(err)
	}
	one.upgrade()
	if got := one.connections(); got != 1 {
		t.Errorf("after the upgrade, there are %d connections, want 1", got)
	}
	one.run("ip", "link", "add", "other", "type", "veth", "peer", "name", "other-peer")
	one.Do(t, func() error {
		return one.tunnel.Connect(map[netip.Addr]Local{one.podAddress: {Device: "other", Rights: AllRights}})
	})
	if got := one.connections(); got != 0 {
		t.Errorf("the new pod has %d connections", got)
	}
}
