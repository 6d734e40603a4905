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

// linkLocal are the addresses of the link, where services trust whoever reaches them, such as a cloud's metadata.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// confine closes the link's addresses to this process and to the steps that it starts, but for the name servers, and gives up the right to open them again. That
// right it has in its pod's network alone.
func confine(resolvers string) error {
	if err := closeAddresses(resolvers); err != nil {
		return err
	}
	if err := giveUp(unix.CAP_NET_ADMIN); err != nil {
		return fmt.Errorf("keep the build from the addresses of its node's link: %w", err)
	}
	return nil
}

// closeAddresses closes them in the network of this process, for whoever is in it.
func closeAddresses(resolvers string) error {
	servers, err := nameServers(resolvers)
	if err == nil {
		err = closeLink(servers)
	}
	if err != nil {
		return fmt.Errorf("keep the build from the addresses of its node's link: %w", err)
	}
	return nil
}

// nameServers are those of a file like /etc/resolv.conf; without one there are none.
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

// closeLink makes the link's addresses unreachable in the network of this thread. Those of open are reached as everything else is.
func closeLink(open []netip.Addr) error {
	for _, server := range open {
		if !linkLocal.Contains(server) {
			continue
		}
		way, err := defaultRoute()
		if err != nil {
			return err
		}
		way.Dst = network(netip.PrefixFrom(server, server.BitLen()))
		if err := netlink.RouteReplace(way); err != nil {
			return fmt.Errorf("set route to name server %s: %w", server, err)
		}
	}
	if err := netlink.RouteReplace(&netlink.Route{Dst: network(linkLocal), Type: unix.RTN_UNREACHABLE}); err != nil {
		return fmt.Errorf("close %s: %w", linkLocal, err)
	}
	return nil
}

// defaultRoute is the way to everything else.
func defaultRoute() (*netlink.Route, error) {
	routes, err := netlink.RouteGet(net.IPv4(192, 0, 2, 1)) // of an address that is for documents
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("find default route: %w", err)
	}
	return &netlink.Route{LinkIndex: routes[0].LinkIndex, Gw: routes[0].Gw}, nil
}

func network(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// giveUp takes a capability from all threads of the process and from whatever they start.
func giveUp(capability uintptr) error {
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
