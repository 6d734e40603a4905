package hostaddr

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func add(t *testing.T, link netlink.Link, addresses ...string) netlink.Link {
	t.Helper()
	must(t, netlink.LinkAdd(link))
	link, err := netlink.LinkByName(link.Attrs().Name)
	must(t, err)
	t.Cleanup(func() { _ = netlink.LinkDel(link) })
	for _, a := range addresses {
		address, err := netlink.ParseAddr(a)
		must(t, err)
		must(t, netlink.AddrAdd(link, address))
	}
	must(t, netlink.LinkSetUp(link))
	return link
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHostAddress(t *testing.T) {
	if _, err := HostAddress(""); !errors.Is(err, ErrNoAddress) {
		t.Errorf("offline: got %v", err)
	}

	add(t, &netlink.Bridge{LinkAttrs: attrs("slipway0")}, "10.128.0.1/23")
	if _, err := HostAddress("", "slipway0"); !errors.Is(err, ErrNoAddress) {
		t.Errorf("offline with our own bridge: got %v", err)
	}
	add(t, &netlink.Bridge{LinkAttrs: attrs("virbr0")}, "192.168.122.1/24")
	expect(t, "", "192.168.122.1")

	lower := add(t, &netlink.Bridge{LinkAttrs: attrs("lower")})
	add(t, &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "lan", ParentIndex: lower.Attrs().Index}}, "169.254.7.7/16", "198.51.100.7/24")
	expect(t, "", "198.51.100.7")

	uplink := add(t, &netlink.Bridge{LinkAttrs: attrs("uplink")}, "203.0.113.9/24")
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Gw: net.IPv4(203, 0, 113, 1)}))
	must(t, netlink.LinkSetMTU(uplink, 1400))
	if mtu, err := MTU(); err != nil || mtu != 1400 {
		t.Errorf("MTU: got %d, %v", mtu, err)
	}
	expect(t, "", "203.0.113.9")
	expect(t, "198.51.100.7", "198.51.100.7")
	for _, invalid := range []string{"198.51.100.8", "host"} {
		if got, err := HostAddress(invalid); err == nil {
			t.Errorf("preferred %q: got %s", invalid, got)
		}
	}

	var got []string
	for _, address := range HostAddresses("slipway0") {
		got = append(got, address.String())
	}
	want := []string{"127.0.0.1", "::1", "192.168.122.1", "198.51.100.7", "203.0.113.9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestSecondAddressIsOnTheSameDevice(t *testing.T) {
	add(t, &netlink.Bridge{LinkAttrs: attrs("other")}, "192.0.2.8/24", "2001:db8:1::8/64")
	uplink := add(t, &netlink.Bridge{LinkAttrs: attrs("uplink")}, "203.0.113.9/24")
	first := netip.MustParseAddr("203.0.113.9")
	if second, err := Second(first); err != nil || second.IsValid() {
		t.Errorf("without an IPv6 address: got %s, %v", second, err)
	}
	for address, deprecated := range map[string]bool{"2001:db8::7/64": true, "2001:db8::9/64": false} {
		parsed, err := netlink.ParseAddr(address)
		must(t, err)
		parsed.Flags = unix.IFA_F_NODAD
		if deprecated {
			parsed.PreferedLft, parsed.ValidLft = 0, 1000
		}
		must(t, netlink.AddrAdd(uplink, parsed))
	}
	if second, err := Second(first); err != nil || second != netip.MustParseAddr("2001:db8::9") {
		t.Errorf("got %s, %v", second, err)
	}
}

// TestMachineWithOnlyIPv6 simulates a machine whose only IPv4 address was assigned by
// AssignOffline.
func TestMachineWithOnlyIPv6(t *testing.T) {
	_, err := AssignOffline("slipway-host")
	must(t, err)
	t.Cleanup(func() {
		if link, err := netlink.LinkByName("slipway-host"); err == nil {
			_ = netlink.LinkDel(link)
		}
	})
	if second, err := Second(OfflineAddress); err != nil || second.IsValid() {
		t.Errorf("without an IPv6 address: got %s, %v", second, err)
	}
	add6 := func(name, address string) netlink.Link {
		link := add(t, &netlink.Bridge{LinkAttrs: attrs(name)})
		parsed, err := netlink.ParseAddr(address)
		must(t, err)
		parsed.Flags = unix.IFA_F_NODAD
		must(t, netlink.AddrAdd(link, parsed))
		return link
	}
	add6("slipway0", "fd01::1/64")
	add6("other", "2001:db8:1::8/64")
	if second, err := Second(OfflineAddress, "slipway0"); err != nil || second != netip.MustParseAddr("2001:db8:1::8") {
		t.Errorf("without a default route: got %s, %v", second, err)
	}
	uplink := add6("uplink", "2001:db8::7/64")
	must(t, netlink.LinkSetMTU(uplink, 1400))
	_, everything, err := net.ParseCIDR("::/0")
	must(t, err)
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: uplink.Attrs().Index, Gw: net.ParseIP("2001:db8::1"), Dst: everything}))
	if second, err := Second(OfflineAddress, "slipway0"); err != nil || second != netip.MustParseAddr("2001:db8::7") {
		t.Errorf("got %s, %v", second, err)
	}
	if mtu, err := MTU(); err != nil || mtu != 1400 {
		t.Errorf("MTU: got %d, %v", mtu, err)
	}
}

func expect(t *testing.T, preferred, want string) {
	t.Helper()
	got, err := HostAddress(preferred, "slipway0")
	if err != nil || got != netip.MustParseAddr(want) {
		t.Errorf("preferred %q: got %s, %v; want %s", preferred, got, err, want)
	}
}

func TestOfflineAddress(t *testing.T) {
	t.Cleanup(func() {
		if link, err := netlink.LinkByName("slipway-host"); err == nil {
			_ = netlink.LinkDel(link)
		}
	})
	for range 2 {
		address, err := AssignOffline("slipway-host")
		must(t, err)
		got, err := HostAddress("")
		if err != nil || got != address {
			t.Errorf("got %s, %v; want %s", got, err, address)
		}
	}
}
