package kit

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

// Machine is a network namespace that acts as a cluster's machine. Its eth0 device has an address,
// and connects it to the same networks as the machine that runs the test ("this machine").
type Machine struct {
	*netnamespace.Namespace
	// Address is eth0's address.
	Address netip.Addr
	// Gateway is this machine's address on eth0's network.
	Gateway netip.Addr
	// With Options.IPv6, Second is eth0's IPv6 address, and SecondGateway is this machine's IPv6
	// address on eth0's network.
	Second, SecondGateway netip.Addr
	// Distant is another address of this machine. It is outside the networks that the cluster's
	// machine is connected to, as is the address of a server on the internet.
	Distant netip.Addr

	name    string   // name of this machine's network device and nftables table for the Machine
	devices []string // devices that existed before the cluster started
	// segment is the network segment that the machine shares with other machines, or nil.
	// ownsSegment is set for the first machine on a segment. Removing this machine also removes the
	// segment.
	segment     *segment
	ownsSegment bool
}

// newMachine creates the namespace, connects it, and adds the rules for its outgoing packets. If
// shared is not nil, the machine is on that segment. Otherwise, with Options.Segment, it is on a
// new segment.
func newMachine(options Options, shared *segment) (*Machine, error) {
	random := make([]byte, 3)
	_, _ = rand.Read(random) // crypto/rand.Read never fails
	namespace, err := netnamespace.New()
	if err != nil {
		return nil, err
	}
	m := &Machine{Namespace: namespace, name: "test-" + hex.EncodeToString(random), segment: shared}
	if options.Segment && shared == nil {
		if m.segment, err = newSegment(m.name); err != nil {
			return nil, errors.Join(err, m.remove())
		}
		m.ownsSegment = true
	}
	if err := m.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("connect network namespace: %w", err), m.remove())
	}
	if options.IPv6 {
		if err := m.connectIPv6(); err != nil {
			return nil, errors.Join(fmt.Errorf("give network namespace an IPv6 address: %w", err), m.remove())
		}
	}
	return m, nil
}

// connect assigns the machine a /30 network from testNetworks, or an address on its segment.
func (m *Machine) connect() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = m.name
	cable := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(m.FD())}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("add device %q: %w", m.name, err)
	}
	bits, gateway := 30, m.name
	if m.segment != nil {
		bits, gateway = 24, m.segment.bridge
		if err := m.segment.attach(m.name); err != nil {
			return err
		}
		m.Gateway, m.Address = m.segment.gateway, m.segment.last.Next()
		m.segment.last = m.Address
	} else {
		network, err := claim(m.name, bits)
		if err != nil {
			return err
		}
		m.Gateway = network.Addr().Next()
		m.Address = m.Gateway.Next()
	}
	// Machines have different addresses in 198.18.0.0/15, so this mapping gives them different
	// distant addresses in 100.64.0.0/15.
	octets := m.Address.As4()
	m.Distant = netip.AddrFrom4([4]byte{100, 46 + octets[1], octets[2], octets[3]})
	err := netnamespace.SetUp(gateway, netip.PrefixFrom(m.Distant, 32))
	if err != nil {
		return err
	}
	err = m.Do(func() error {
		if err := skipAddressDetection("eth0"); err != nil {
			return err
		}
		if err := errors.Join(netnamespace.SetUp("lo", netip.Prefix{}), netnamespace.SetUp("eth0", netip.PrefixFrom(m.Address, bits))); err != nil {
			return err
		}
		m.devices, err = deviceNames()
		return errors.Join(err, netlink.RouteAdd(&netlink.Route{Gw: m.Gateway.AsSlice()}))
	})
	if err != nil {
		return err
	}
	if m.segment != nil {
		return nil
	}
	return letOut(m.name, "ip saddr "+m.Address.String(), m.name)
}

// connectIPv6 assigns the machine an IPv6 address that ends with the last octet of its IPv4
// address.
func (m *Machine) connectIPv6() error {
	if m.segment == nil {
		return errors.New("the machine shares no network segment")
	}
	gateway, err := m.segment.enableIPv6()
	if err != nil {
		return err
	}
	octets := gateway.Addr().As16()
	octets[15] = m.Address.As4()[3]
	m.Second, m.SecondGateway = netip.AddrFrom16(octets), gateway.Addr()
	return m.Do(func() error {
		return errors.Join(netnamespace.SetUp("eth0", netip.PrefixFrom(m.Second, gateway.Bits())),
			netlink.RouteAdd(&netlink.Route{Gw: m.SecondGateway.AsSlice(), Dst: &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}))
	})
}

// skipAddressDetection makes a device's IPv6 address valid immediately. Otherwise, the address
// would become valid seconds later, and Chromium aborts its requests whenever an address changes.
func skipAddressDetection(device string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/accept_dad", []byte("0"), 0)
	if errors.Is(err, fs.ErrNotExist) { // the kernel does not support IPv6
		return nil
	}
	return err
}

// letOut makes this machine route and masquerade the packets that match an nftables expression such
// as `ip saddr 198.18.0.2`. It does not masquerade packets that leave through the given device.
func letOut(table, match, device string) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("enable forwarding: %w", err)
	}
	rules := fmt.Sprintf(`table ip %s {
		chain out { type nat hook postrouting priority 100; %s oifname != %q masquerade; }
	}`, table, match, device)
	return nft(rules)
}

// SetConnected connects the machine to its network, or disconnects it as if its network cable had
// been unplugged.
func (m *Machine) SetConnected(connected bool) error {
	link, err := netlinksafe.LinkByName(m.name)
	if err != nil {
		return fmt.Errorf("find device %q: %w", m.name, err)
	}
	if connected {
		return netlink.LinkSetUp(link)
	}
	return netlink.LinkSetDown(link)
}

// Filter makes the machine drop packets that match an nftables expression such as `tcp dport 2380`,
// until stop is called. hook is "input" or "output".
func (m *Machine) Filter(hook, match string) (stop func() error, err error) {
	rules := fmt.Sprintf("table inet fault { chain c { type filter hook %s priority -400; %s drop; }; }", hook, match)
	return func() error { return m.Do(func() error { return nft("delete table inet fault") }) }, m.Do(func() error { return nft(rules) })
}

// remove disconnects the namespace. The kernel removes the namespace when its last process exits.
func (m *Machine) remove() error {
	var errs []error
	if link, err := netlinksafe.LinkByName(m.name); err == nil {
		errs = append(errs, netlink.LinkDel(link))
	}
	if m.ownsSegment {
		errs = append(errs, m.segment.remove())
	} else if m.Address.IsValid() && m.segment == nil {
		errs = append(errs, removeTable(m.name))
	}
	return errors.Join(append(errs, m.Close())...)
}

// removeTable removes an nftables table. Declaring the table first makes the deletion succeed if
// the table does not exist.
func removeTable(name string) error {
	return nft(fmt.Sprintf("table ip %s; delete table ip %s", name, name))
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
