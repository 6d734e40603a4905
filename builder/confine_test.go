package builder

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inPod calls test in a network namespace like a pod's: it has one device, and a default route
// through a gateway.
func inPod(t *testing.T, test func(device int)) {
	t.Helper()
	done := make(chan error)
	go func() {
		defer close(done)      // also runs if the test calls Goexit
		runtime.LockOSThread() // never unlocked, so that the thread and its network namespace end
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			attributes := netlink.NewLinkAttrs()
			attributes.Name = "eth0"
			device := &netlink.Veth{LinkAttrs: attributes, PeerName: "peer"}
			if err := netlink.LinkAdd(device); err != nil {
				return err
			}
			peer, err := netlink.LinkByName("peer")
			if err != nil {
				return err
			}
			address, err := netlink.ParseAddr("10.128.0.5/24")
			if err != nil {
				return err
			}
			err = errors.Join(netlink.AddrAdd(device, address), netlink.LinkSetUp(device), netlink.LinkSetUp(peer),
				netlink.RouteAdd(&netlink.Route{LinkIndex: device.Attrs().Index, Gw: net.IPv4(10, 128, 0, 1)}))
			if err == nil {
				test(device.Attrs().Index)
			}
			return err
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLinkLocalAddressesAreBlocked(t *testing.T) {
	inPod(t, func(device int) {
		route := func(to string) (reached bool, err error) {
			routes, err := netlink.RouteGet(net.ParseIP(to))
			return len(routes) == 1 && routes[0].LinkIndex == device && routes[0].Gw.Equal(net.IPv4(10, 128, 0, 1)), err
		}
		if reached, err := route("169.254.169.254"); !reached {
			t.Errorf("the metadata address is blocked at the start: %v", err)
		}
		for range 2 { // confine is idempotent
			if err := blockLinkLocalRoutes([]netip.Addr{netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("10.0.0.1")}); err != nil {
				t.Fatal(err)
			}
		}
		for _, closed := range []string{"169.254.169.254", "169.254.0.1", "169.254.20.11"} {
			if _, err := route(closed); !errors.Is(err, unix.EHOSTUNREACH) {
				t.Errorf("%s is not blocked: %v", closed, err)
			}
		}
		openIPv6(t, device)
		for _, closed := range []string{"fe80::1", "fd00:ec2::254", "fd20:ce::254"} {
			for _, bound := range []int{0, device} {
				routes, err := netlink.RouteGetWithOptions(net.ParseIP(closed), &netlink.RouteGetOptions{OifIndex: bound})
				if !errors.Is(err, unix.ENETUNREACH) {
					t.Errorf("%s is not blocked for a socket bound to device %d: %v, %v", closed, bound, routes, err)
				}
			}
		}
		if _, err := netlink.RouteGet(net.ParseIP("2001:db8::7")); err != nil {
			t.Errorf("other IPv6 addresses are blocked: %v", err)
		}
		for _, open := range []string{"169.254.20.10", "10.0.0.1", "192.0.2.7"} {
			if reached, err := route(open); !reached {
				t.Errorf("%s is blocked: %v", open, err)
			}
		}
	})
}

// openIPv6 adds a default route, and the link-local route that the kernel adds once the device has
// a carrier.
func openIPv6(t *testing.T, device int) {
	t.Helper()
	for _, destination := range []string{"fe80::/64", "::/0"} {
		err := netlink.RouteReplace(&netlink.Route{LinkIndex: device, Dst: network(netip.MustParsePrefix(destination))})
		if err != nil {
			t.Fatalf("add route to %s: %v", destination, err)
		}
	}
}

func TestNameServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("# nameserver 10.0.0.9\nsearch svc\nnameserver 169.254.20.10\nnameserver\nnameserver fe80::1%eth0\nnameserver name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []netip.Addr{netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("fe80::1%eth0")}
	if servers, err := nameServers(file); err != nil || !slices.Equal(servers, want) {
		t.Errorf("got %v, %v, want %v", servers, err, want)
	}
	if servers, err := nameServers(file + ".none"); err != nil || servers != nil {
		t.Errorf("without a file: %v, %v", servers, err)
	}
}
