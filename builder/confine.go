package builder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkLocal is the link-local address range. Services at these addresses, such as a cloud's
// metadata service, trust every client.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// linkLocal6 contains the corresponding IPv6 addresses: the link-local range and the addresses of
// cloud metadata services.
var linkLocal6 = []netip.Prefix{
	netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("fd20:ce::254/128"),
}

// confine makes link-local addresses, except the addresses of IPv4 name servers, unreachable in the
// pod's network namespace. It then drops CAP_NET_ADMIN, so that neither this process nor the build
// steps that it starts can undo the change.
func confine(resolvConf string) error {
	if err := blockAddresses(resolvConf); err != nil {
		return err
	}
	if err := dropCapability(unix.CAP_NET_ADMIN); err != nil {
		return fmt.Errorf("block link-local addresses: %w", err)
	}
	return nil
}

// blockAddresses blocks link-local addresses, except the addresses of name servers, in this
// process's network namespace.
func blockAddresses(resolvConf string) error {
	servers, err := nameServers(resolvConf)
	if err == nil {
		err = blockLinkLocalRoutes(servers)
	}
	if err != nil {
		return fmt.Errorf("block link-local addresses: %w", err)
	}
	return nil
}

// nameServers returns the name servers in a file in resolv.conf format. It returns nil if the file
// does not exist.
func nameServers(file string) (servers []netip.Addr, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); err == nil && lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if server, err := netip.ParseAddr(words[1]); err == nil {
			servers = append(servers, server)
		}
	}
	return servers, err
}

// blockLinkLocalRoutes makes link-local addresses unreachable in this thread's network namespace.
// The link-local addresses in allowed stay reachable through the default route.
func blockLinkLocalRoutes(allowed []netip.Addr) error {
	for _, server := range allowed {
		if !linkLocal.Contains(server) {
			continue
		}
		route, err := defaultRoute()
		if err != nil {
			return err
		}
		route.Dst = network(netip.PrefixFrom(server, server.BitLen()))
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("add route to name server %s: %w", server, err)
		}
	}
	if err := netlink.RouteReplace(&netlink.Route{Dst: network(linkLocal), Type: unix.RTN_UNREACHABLE}); err != nil {
		return fmt.Errorf("block %s: %w", linkLocal, err)
	}
	for _, prefix := range linkLocal6 {
		err := netlink.RuleAdd(unreachable6(prefix))
		if err != nil && !errors.Is(err, unix.EEXIST) && !withoutIPv6(err) {
			return fmt.Errorf("block %s: %w", prefix, err)
		}
	}
	return nil
}

// unreachable6 returns a routing rule that makes an IPv6 range unreachable. An unreachable route is
// not sufficient: the kernel's own route to fe80::/64 is more specific, and a socket that is bound
// to a device ignores unreachable routes.
func unreachable6(prefix netip.Prefix) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family = unix.AF_INET6
	rule.Priority = 1 // this rule precedes all routing tables except the local table
	rule.Dst = network(prefix)
	rule.Type = unix.RTN_UNREACHABLE
	return rule
}

// withoutIPv6 reports whether err means that the kernel or the network namespace has no IPv6. In
// this case, IPv6 addresses are already unreachable.
func withoutIPv6(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EACCES)
}

// defaultRoute returns a route with the device and gateway of the namespace's IPv4 default route.
func defaultRoute() (*netlink.Route, error) {
	// Only the default route leads to this address, which is reserved for documentation.
	routes, err := netlink.RouteGet(net.IPv4(192, 0, 2, 1))
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("find default route: %w", err)
	}
	return &netlink.Route{LinkIndex: routes[0].LinkIndex, Gw: routes[0].Gw}, nil
}

func network(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// dropCapability drops a capability in all threads of the process, and in all programs that it
// starts.
func dropCapability(capability uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0); errno != 0 {
		return fmt.Errorf("drop capability %d: %w", capability, errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	keep := ^(uint32(1) << (capability % 32))
	set := &sets[capability/32]
	set.Effective, set.Permitted, set.Inheritable = set.Effective&keep, set.Permitted&keep, set.Inheritable&keep
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		return fmt.Errorf("set capabilities: %w", errno)
	}
	return nil
}
