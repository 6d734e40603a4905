package multitenant

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/bigiptest"
	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/test/kit"
)

// tunnel is one end of an IP-in-IP tunnel (RFC 2003). The test implements it in this process,
// because the kernel might not have the driver.
type tunnel struct {
	machine       *kit.Machine
	local, remote netip.Addr
	address       netip.Prefix // address of the tunnel device
}

// tunnelDevice is the name of the tunnel device at both ends.
const tunnelDevice = "f5"

// start creates the device and forwards packets until the test ends.
func (e tunnel) start(t *testing.T) {
	t.Helper()
	var device *os.File
	var wire *net.IPConn
	err := e.machine.Do(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.MTU = tunnelDevice, 1480
		link := &netlink.Tuntap{LinkAttrs: attributes, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, Queues: 1, NonPersist: true}
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("add device: %w", err)
		}
		device = link.Fds[0]
		var err error
		wire, err = net.DialIP("ip4:4", &net.IPAddr{IP: e.local.AsSlice()}, &net.IPAddr{IP: e.remote.AsSlice()})
		return errors.Join(err, netnamespace.SetUp(tunnelDevice, e.address))
	})
	if err != nil {
		t.Fatalf("create tunnel: %v", err)
	}
	done := make(chan struct{}, 2)
	move := func(read func([]byte) (int, error), write func([]byte) (int, error)) {
		defer func() { done <- struct{}{} }()
		for buffer := make([]byte, 1<<16); ; {
			size, err := read(buffer)
			if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
				return
			}
			// Ignore errors, because a machine responds "protocol unreachable" until both ends
			// exist.
			if err == nil {
				_, _ = write(buffer[:size]) // senders retransmit lost packets
			}
		}
	}
	go move(device.Read, wire.Write)
	// ReadFromIP removes the outer IP header.
	go move(func(b []byte) (int, error) { size, _, err := wire.ReadFromIP(b); return size, err }, device.Write)
	t.Cleanup(func() {
		_ = errors.Join(wire.Close(), device.Close())
		<-done
		<-done
	})
}

// masquerade contains the guide's nftables rules for the ramp node.
const masquerade = `
add table ip f5
add chain ip f5 postrouting { type nat hook postrouting priority srcnat; }
add rule ip f5 postrouting ip saddr 198.51.100.2 ip daddr 10.128.0.0/14 masquerade
`

// nft runs nft commands on a machine.
func nft(machine *kit.Machine, commands string) error {
	return machine.Do(func() error {
		command := exec.Command("nft", "-f", "-")
		command.Stdin = strings.NewReader(commands)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run nft: %w: %s", err, output)
		}
		return nil
	})
}

// TestApplianceReachesPodsThroughRampNode follows the guide "Serve routes with an F5 BIG-IP". The
// second host is the ramp node, and it is unschedulable.
func TestApplianceReachesPodsThroughRampNode(t *testing.T) {
	s := newTenants(t)
	a := s.newAppliance(t, nil)
	s.OC("adm", "manage-node", second, "--schedulable=false")
	t.Cleanup(func() { s.OC("adm", "manage-node", second, "--schedulable=true") })
	ends := netip.MustParsePrefix("198.51.100.1/30")
	tunnel{s.second.Machine, s.second.Address, a.machine.Address, ends}.start(t)
	tunnel{a.machine, a.machine.Address, s.second.Address, netip.PrefixFrom(ends.Addr().Next(), ends.Bits())}.start(t)
	if err := nft(s.second.Machine, masquerade); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nft(s.second.Machine, "delete table ip f5"); err != nil {
			t.Error(err)
		}
	})
	err := a.machine.Do(func() error {
		link, err := netlinksafe.LinkByName(tunnelDevice)
		if err != nil {
			return err
		}
		_, network, err := net.ParseCIDR("10.128.0.0/14")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network})
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, tenant := range []tenant{s.blue, s.red} {
		for _, pod := range pods() {
			tenant.OC("expose", "service", pod, "--hostname="+pod+"."+tenant.Namespace+".example.com")
		}
	}
	s.install(t, a, "--external-host-http-vserver="+bigiptest.HTTPServer, "--external-host-https-vserver="+bigiptest.HTTPSServer)
	// The pods are on the ramp node itself, on a host in the same segment, and on a host that
	// packets reach through VXLAN.
	for _, tenant := range []tenant{s.blue, s.red} {
		for _, pod := range pods() {
			s.waitPage(a, "http://"+pod+"."+tenant.Namespace+".example.com/", nil, "I am "+tenant.marker(pod))
		}
	}
	if tunnels := a.Names("net/tunnels/tunnel"); len(tunnels) > 0 {
		t.Errorf("the router created the tunnels %q", tunnels)
	}
}
