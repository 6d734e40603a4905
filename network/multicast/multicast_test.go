package multicast

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/spoofcheck"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// group is the address and port to which the pods send packets.
const group = "239.1.2.3:5000"

// pod is a pod's network namespace, on whose device package spoofcheck checks frames. It records
// the packets that it receives.
type pod struct {
	hosttest.Namespace
	Pod
	listener *net.UDPConn
}

func newPod(t *testing.T, number int) *pod {
	t.Helper()
	name := fmt.Sprint("pod", number)
	p := &pod{Namespace: hosttest.NewNamespace(t, name)}
	p.Pod = Pod{Device: "to-" + name, Address: netip.AddrFrom4([4]byte{10, 128, byte(number), 2})}
	gateway := fmt.Sprintf("10.128.%d.1", number)
	p.Connect(t, gateway+"/24", p.Address.String()+"/24")
	p.Do(t, func() error {
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetHardwareAddr(link, cni.HardwareAddress(p.Address)); err != nil {
			return err
		}
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		p.listener, err = net.ListenMulticastUDP("udp4", device, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(group)))
		return err
	})
	t.Cleanup(func() { p.listener.Close() })
	if err := spoofcheck.Check("test", spoofcheck.Pod{
		Device: p.Device, Address: p.Address, MAC: cni.HardwareAddress(p.Address),
		GatewayAddress: netip.MustParseAddr(gateway), GatewayMAC: cni.HardwareAddress(netip.MustParseAddr(gateway)),
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a datagram to the group. source is the pod's address or a forged address.
func (p *pod) send(t *testing.T, source, text string) {
	t.Helper()
	p.Do(t, func() error {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(source)}}
		conn, err := dialer.Dial("udp4", group)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(text))
		return err
	})
}

// received returns the datagrams that have arrived.
func (p *pod) received() (texts []string) {
	for buffer := make([]byte, 64); ; {
		_ = p.listener.SetReadDeadline(time.Now().Add(time.Millisecond))
		size, _, err := p.listener.ReadFrom(buffer)
		if err != nil {
			return texts
		}
		texts = append(texts, string(buffer[:size]))
	}
}

func TestGroupsReceiveTheirPackets(t *testing.T) {
	var pods []*pod
	for number := range 4 {
		pods = append(pods, newPod(t, number+1))
	}
	table, err := Open("test-multicast", "no-tunnel")
	if err != nil {
		t.Fatal(err)
	}
	// expect sends a packet from each pod, and checks which senders' packets each pod receives.
	expect := func(when, want string) {
		t.Helper()
		eventually.Equal(t, "packets "+when, func() string {
			for number, p := range pods {
				p.send(t, p.Address.String(), fmt.Sprint(number))
			}
			var got []string
			for number, p := range pods {
				// The kernel also delivers a pod's own packets to the pod.
				texts := slices.DeleteFunc(p.received(), func(text string) bool { return text == fmt.Sprint(number) })
				slices.Sort(texts)
				got = append(got, strings.Join(slices.Compact(texts), ","))
			}
			return strings.Join(got, " ")
		}, want)
	}
	apply := func(groups ...Group) {
		t.Helper()
		if err := table.Apply(t.Context(), groups); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	expect("without groups", "   ")
	apply(Group{Local: []Pod{pods[1].Pod, pods[0].Pod, pods[2].Pod}})
	expect("in one group", "1,2 0,2 0,1 ")
	apply(Group{Local: []Pod{pods[0].Pod, pods[1].Pod}}, Group{Local: []Pod{pods[2].Pod, pods[3].Pod}})
	expect("in two groups", "1 0 3 2")

	// A pod cannot use another pod's source address.
	forge := func(change func(netlink.Link, *netlink.Addr) error) {
		t.Helper()
		pods[0].Do(t, func() error {
			link, err := netlinksafe.LinkByName("eth0")
			if err != nil {
				return err
			}
			return change(link, &netlink.Addr{IPNet: netlink.NewIPNet(pods[2].Address.AsSlice())})
		})
	}
	forge(netlink.AddrAdd)
	pods[0].send(t, pods[2].Address.String(), "forged")
	expect("with another address", "1 0 3 2")
	forge(netlink.AddrDel)

	// Another program removes the table.
	tx := table.nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := table.nft.Run(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	expect("without a table", "   ")
	if err := table.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(Group{Local: []Pod{pods[0].Pod, pods[1].Pod}})
	expect("with the table again", "1 0  ")

	// The device of a pod is deleted with the pod.
	pods[1].Delete()
	apply(Group{Local: []Pod{pods[0].Pod, pods[2].Pod}})
	pods = []*pod{pods[0], pods[2]}
	expect("after the end of a pod", "1 0")
}
