package kit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// Machine is a network namespace that stands for a machine: it has a device eth0 with an address,
// and reaches what this machine reaches through it.
type Machine struct {
	// Address is the address of eth0.
	Address netip.Addr
	// Gateway is the address of this machine in the same network.
	Gateway netip.Addr
	// Distant is another address of this machine, in none of the networks that the cluster's
	// machine is connected to: a server there is anywhere in the world.
	Distant netip.Addr

	name      string // tells devices and tables of this machine from those of others
	namespace *os.File
	devices   []string // that were there before a cluster
}

// newMachine makes the namespace, the cable to it and the rules that let it out.
func newMachine() (*Machine, error) {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // never fails
	m := &Machine{name: "test-" + hex.EncodeToString(random)}
	if err := m.makeNamespace(); err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	if err := m.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("connect network namespace: %w", err), m.remove())
	}
	return m, nil
}

func (m *Machine) makeNamespace() error {
	return thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		m.namespace, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
}

// connect gives the machine a /30 of the range that RFC 2544 sets aside for tests between machines.
func (m *Machine) connect() error {
	number, err := rand.Int(rand.Reader, big.NewInt(1<<15))
	if err != nil {
		return err
	}
	offset := 4 * number.Int64()
	base := [4]byte{198, byte(18 + offset>>16), byte(offset >> 8), byte(offset)}
	m.Gateway = netip.AddrFrom4(base).Next()
	m.Address = m.Gateway.Next()
	m.Distant = netip.AddrFrom4([4]byte{100, 64, byte(number.Int64() >> 8), byte(number.Int64())})

	attributes := netlink.NewLinkAttrs()
	attributes.Name = m.name
	cable := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(m.namespace.Fd()))}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("add device %q: %w", m.name, err)
	}
	if err := errors.Join(setUp(m.name, m.Gateway, 30), setUp(m.name, m.Distant, 32)); err != nil {
		return err
	}
	err = m.Do(func() error {
		if err := errors.Join(setUp("lo", netip.Addr{}, 0), setUp("eth0", m.Address, 30)); err != nil {
			return err
		}
		m.devices, err = deviceNames()
		return errors.Join(err, netlink.RouteAdd(&netlink.Route{Gw: m.Gateway.AsSlice()}))
	})
	if err != nil {
		return err
	}
	return m.letOut()
}

// letOut makes this machine a router for the namespace.
func (m *Machine) letOut() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("switch on forwarding: %w", err)
	}
	rules := fmt.Sprintf(`table ip %s {
		chain out { type nat hook postrouting priority 100; ip saddr %s oifname != %q masquerade; }
	}`, m.name, m.Address, m.name)
	return nft(rules)
}

// remove ends the namespace's connection; the namespace itself ends with its last process.
func (m *Machine) remove() error {
	var errs []error
	if link, err := netlinksafe.LinkByName(m.name); err == nil {
		errs = append(errs, netlink.LinkDel(link))
	}
	// Declared first, so that the deletion of a table that was never made is none.
	if m.Address.IsValid() {
		errs = append(errs, nft(fmt.Sprintf("table ip %s; delete table ip %s", m.name, m.name)))
	}
	return errors.Join(append(errs, m.namespace.Close())...)
}

// Do runs f with its thread in the machine's network: sockets that f makes, and processes that it
// starts, belong there. Goroutines that f starts do not.
func (m *Machine) Do(f func() error) error {
	return thread.Run(func() error {
		if err := unix.Setns(int(m.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// Dial connects from within the machine's network; the host of address must be an IP address.
func (m *Machine) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = m.Do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens in the machine's network, for instance on a port that the cluster wants.
func (m *Machine) Listen(network, address string) (listener net.Listener, err error) {
	err = m.Do(func() error {
		listener, err = net.Listen(network, address)
		return err
	})
	return listener, err
}

func setUp(device string, address netip.Addr, bits int) error {
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %q: %w", device, err)
	}
	if address.IsValid() {
		prefix := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, 32)}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: prefix}); err != nil {
			return fmt.Errorf("give device %q address %s: %w", device, address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", device, err)
	}
	return nil
}

func deviceNames() ([]string, error) {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	var names []string
	for _, link := range links {
		names = append(names, link.Attrs().Name)
	}
	return names, nil
}

func nft(rules string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("set nftables rules: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
