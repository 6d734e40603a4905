package hostaddr

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestAddressesFollowTheMachine(t *testing.T) {
	link := add(t, &netlink.Bridge{LinkAttrs: attrs("uplink")}, "203.0.113.9/24")
	change := func(address string, apply func(netlink.Link, *netlink.Addr) error) {
		t.Helper()
		parsed, err := netlink.ParseAddr(address)
		must(t, err)
		parsed.Flags = unix.IFA_F_NODAD
		must(t, apply(link, parsed))
	}
	current := Addresses{First: netip.MustParseAddr("203.0.113.9"), DualStack: true}
	check := func(what, first, second string) {
		t.Helper()
		next := current.next("", nil)
		want := Addresses{First: netip.MustParseAddr(first), DualStack: true}
		if second != "" {
			want.Second = netip.MustParseAddr(second)
		}
		if next != want {
			t.Errorf("%s: %v, want %v", what, next, want)
		}
		current = next
	}
	check("no change", "203.0.113.9", "")
	change("2001:db8::7/64", netlink.AddrAdd)
	check("first IPv6 address", "203.0.113.9", "2001:db8::7")
	change("2001:db8::8/64", netlink.AddrAdd)
	check("additional IPv6 address", "203.0.113.9", "2001:db8::7")
	change("2001:db8::7/64", netlink.AddrDel)
	check("removed IPv6 address", "203.0.113.9", "2001:db8::8")
	change("2001:db8::8/64", netlink.AddrDel)
	check("last IPv6 address", "203.0.113.9", "2001:db8::8")
	change("203.0.113.9/24", netlink.AddrDel)
	check("no IPv4 address", "203.0.113.9", "2001:db8::8")
	change("203.0.113.10/24", netlink.AddrAdd)
	check("other IPv4 address", "203.0.113.10", "2001:db8::8")

	current.DualStack = false
	change("2001:db8::9/64", netlink.AddrAdd)
	if next := current.next("", nil); next != current {
		t.Errorf("without IPv6 addresses of pods: %v", next)
	}
}
