// Package netnamespace runs functions in network namespaces: the namespaces of pods, and unnamed
// namespaces that it creates for tests and benchmarks. A namespace exists until its last process
// has exited and its last file is closed.
package netnamespace

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// Namespace is a network namespace that this process keeps open.
type Namespace struct{ file *os.File }

// New creates a namespace. Its only device is lo, which is down.
func New() (*Namespace, error) {
	n := &Namespace{}
	err := thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		n.file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	return n, nil
}

// Open opens an existing namespace. path is its file, such as /proc/42/ns/net.
func Open(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return &Namespace{file}, nil
}

// FD returns the namespace's file descriptor, which is valid until Close.
func (n *Namespace) FD() int { return int(n.file.Fd()) }

// Close closes the namespace's file.
func (n *Namespace) Close() error { return n.file.Close() }

// Do runs f with its thread in the namespace. Sockets and processes that f creates are in the
// namespace. Goroutines that f starts do not run in the namespace.
func (n *Namespace) Do(f func() error) error {
	return thread.Run(func() error {
		if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// Dial connects from within the namespace. The host of address must be an IP address.
func (n *Namespace) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.Do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens in the namespace.
func (n *Namespace) Listen(network, address string) (listener net.Listener, err error) {
	err = n.Do(func() error {
		listener, err = net.Listen(network, address)
		return err
	})
	return listener, err
}

// SetUp assigns an address, with its network's prefix length, to a device in the calling thread's
// namespace, and sets the device up. Without a valid address, it only sets the device up.
func SetUp(device string, address netip.Prefix) error {
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return fmt.Errorf("get device %q: %w", device, err)
	}
	if address.IsValid() {
		ipNet := &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet}); err != nil {
			return fmt.Errorf("add address %s to device %q: %w", address, device, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", device, err)
	}
	return nil
}
