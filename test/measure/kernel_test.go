package measure

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/test/kit"
)

// newKernelPair connects network namespaces on two machines with kernel features only: with routes,
// or with routes through a VXLAN device like flannel's. No user-space program forwards packets, and
// no rules filter them.
func newKernelPair(t *testing.T, transport transport) pair {
	t.Helper()
	first := kit.New(t, kit.Options{Segment: true})
	machines := []*kit.Cluster{first, first.NewHost("second", kit.Options{})}
	var pods []*netnamespace.Namespace
	for i, machine := range machines {
		pods = append(pods, connectKernelPod(t, machine, i, transport))
		other := 1 - i
		commands := []string{fmt.Sprintf("ip route add %s via %s", kernelSubnet(other), machines[other].Address)}
		if transport == vxlan {
			gateway, hardware := kernelSubnet(other).Addr(), hardwareAddress(other)
			commands = []string{
				fmt.Sprintf("ip link add vxlan0 address %s type vxlan id 1 dev eth0 dstport 4789 nolearning", hardwareAddress(i)),
				fmt.Sprintf("ip address add %s/32 dev vxlan0", kernelSubnet(i).Addr()),
				"ip link set vxlan0 up",
				fmt.Sprintf("bridge fdb add %s dev vxlan0 dst %s", hardware, machines[other].Address),
				fmt.Sprintf("ip neighbor add %s lladdr %s dev vxlan0 nud permanent", gateway, hardware),
				fmt.Sprintf("ip route add %s via %s dev vxlan0 onlink", kernelSubnet(other), gateway),
			}
		}
		for _, command := range commands {
			runOn(t, machine, command)
		}
	}
	return pair{pods[0], pods[1], kernelAddress(1, 2)}
}

// connectKernelPod creates a network namespace with an address in the machine's subnet.
func connectKernelPod(t *testing.T, machine *kit.Cluster, number int, transport transport) *netnamespace.Namespace {
	t.Helper()
	pod, err := netnamespace.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pod.Close() })
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU = "pod", 1500
	if transport == vxlan {
		attributes.MTU = 1450
	}
	err = machine.Do(func() error {
		cable := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerMTU: uint32(attributes.MTU), PeerNamespace: netlink.NsFd(pod.FD())}
		if err := netlink.LinkAdd(cable); err != nil {
			return err
		}
		if err := netnamespace.SetUp("pod", netip.PrefixFrom(kernelAddress(number, 1), 24)); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	})
	if err == nil {
		err = pod.Do(func() error {
			if err := netnamespace.SetUp("eth0", netip.PrefixFrom(kernelAddress(number, 2), 24)); err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{Gw: kernelAddress(number, 1).AsSlice()})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func kernelSubnet(machine int) netip.Prefix { return netip.PrefixFrom(kernelAddress(machine, 0), 24) }

func kernelAddress(machine, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 200, byte(machine), byte(host)})
}

// hardwareAddress returns the MAC address of a machine's VXLAN device.
func hardwareAddress(machine int) string { return fmt.Sprintf("02:00:0a:c8:%02x:00", machine) }

// runOn runs a command on a machine.
func runOn(t *testing.T, machine *kit.Cluster, command string) {
	t.Helper()
	words := strings.Fields(command)
	err := machine.Do(func() error {
		output, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", command, err, output)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
