package multitenant

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/test/kit"
)

// vxlanPort is the default VXLAN port.
const vxlanPort = 4789

// address returns a pod's IPv4 address.
func (t tenant) address(pod string) netip.Addr {
	address, _ := netip.ParseAddr(t.Pod(pod).Status.PodIP)
	return address
}

// wireID returns the network IDs in the VXLAN packets between pods on two hosts. there is the ID in
// packets to the distant host, and back is the ID in packets from it.
func (s tenants) wireID(t *testing.T, from tenant, client string, to tenant) (there, back string) {
	t.Helper()
	capture, err := s.distant.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	r := request{from, client, to.addresses(distant, "")[0], "I am " + to.marker(distant)}
	s.WaitFor(r.String(), func(context.Context) error { return r.send() })
	a, b := from.address(client), to.address(distant)
	next := func(source, target netip.Addr) string {
		packet, err := capture.Next(vxlanPort, func(p vxlanpacket.Packet) bool { return p.Source == source && p.Target == target })
		if err != nil {
			t.Fatalf("VXLAN from %s to %s: %v", source, target, err)
		}
		return strconv.FormatUint(uint64(packet.VNI), 10)
	}
	return next(a, b), next(b, a)
}

func TestPacketsToAnotherSegmentHaveTheNetworkID(t *testing.T) {
	s := sharedTenants(t)
	blue := s.blue.netID()
	for _, client := range []string{"near", "far"} {
		if there, back := s.wireID(t, s.blue, client, s.blue); there != blue || back != blue {
			t.Errorf("network ID %s from %s, %s in the other direction, want %s", there, client, back, blue)
		}
	}
	s.podNetwork("make-projects-global", s.red.Namespace)
	if there, back := s.wireID(t, s.red, "near", s.blue); there != "0" || back != blue {
		t.Errorf("network ID %s from a global project, %s in the other direction, want 0 and %s", there, back, blue)
	}
	// A node's VXLAN device must have the same name as in OpenShift 3, and an MTU that leaves space
	// for the VXLAN header.
	for _, host := range []*kit.Cluster{s.Cluster, s.distant} {
		err := host.Do(func() error {
			link, err := net.InterfaceByName("vxlan_sys_4789")
			if err == nil && link.MTU != 1450 {
				err = fmt.Errorf("its MTU is %d", link.MTU)
			}
			return err
		})
		if err != nil {
			t.Errorf("VXLAN device of %s: %v", host.Address, err)
		}
	}
	err := s.blue.inPod("near", func() error {
		link, err := net.InterfaceByName("eth0")
		if err == nil && link.MTU != 1450 {
			err = fmt.Errorf("its MTU is %d", link.MTU)
		}
		return err
	})
	if err != nil {
		t.Errorf("device of a pod: %v", err)
	}
}

// gatewayMAC returns the MAC address of the VXLAN device on a pod's node.
func gatewayMAC(pod netip.Addr) net.HardwareAddr {
	octets := pod.As4()
	mac, _ := hex.DecodeString(fmt.Sprintf("0a58%02x%02x%02x01", octets[0], octets[1], octets[2]&0xfe))
	return mac
}

// receive listens for datagrams in a project's pod on the distant host.
func (s tenants) receive(t *testing.T, to tenant) <-chan string {
	t.Helper()
	var listener net.PacketConn
	err := to.inPod(distant, func() (err error) {
		listener, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts, stopped := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(stopped)
		for buffer := make([]byte, 64); ; {
			size, _, err := listener.ReadFrom(buffer)
			if err != nil {
				return
			}
			texts <- string(buffer[:size])
		}
	}()
	t.Cleanup(func() { listener.Close(); <-stopped })
	return texts
}

func TestForgedVXLANIsDropped(t *testing.T) {
	s := sharedTenants(t)
	texts := s.receive(t, s.blue)
	target := s.blue.address(distant)
	// node is the first host's gateway address. All projects accept packets from gateway addresses,
	// because these addresses belong to nodes.
	octets := s.blue.address("near").As4()
	octets[2], octets[3] = octets[2]&0xfe, 1
	node := netip.AddrFrom4(octets)
	write := func(where func(func() error) error, source netip.Addr, vni uint32, text string) error {
		packet := vxlanpacket.Packet{VNI: vni, MAC: gatewayMAC(target), Source: source, Target: target, Port: port, Payload: text}
		return where(func() error {
			conn, err := net.Dial("udp4", netip.AddrPortFrom(s.distant.Address, vxlanPort).String())
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write(packet.Encode())
			return err
		})
	}
	red, err := strconv.ParseUint(s.red.netID(), 10, 24)
	if err != nil {
		t.Fatal(err)
	}
	here := func(f func() error) error { return f() }
	inPod := func(pod string) func(func() error) error {
		return func(f func() error) error { return s.red.inPod(pod, f) }
	}
	for name, err := range map[string]error{
		"from an address outside the pod network": write(here, node, 0, "foreign"),
		"from a pod of another host":              write(inPod("near"), node, 0, "pod of another host"),
		"from a pod of the same host":             write(inPod(distant), node, 0, "pod of the same host"),
		"with the network ID of a project":        write(s.Do, s.red.address("near"), uint32(red), "another network"),
		"with an address of another host":         write(s.Do, s.red.address("far"), 0, "address of another host"),
	} {
		// The kernel reports an error to the sender if a rule on the sender's host drops the
		// packet.
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Logf("packet %s: %v", name, err)
		}
	}
	// The host itself is allowed to send on behalf of its pods. Its packet follows the forged
	// packets and must arrive.
	s.WaitFor("packet from the host", func(ctx context.Context) error {
		if err := write(s.Do, node, 0, "host"); err != nil {
			return err
		}
		timeout := time.NewTimer(time.Second)
		defer timeout.Stop()
		for {
			select {
			case text := <-texts:
				if text == "host" {
					return nil
				}
				t.Errorf("a forged packet arrived: %s", text)
			case <-timeout.C:
				return errors.New("it was dropped")
			}
		}
	})
}

// TestDistantHostOutlivesFailures kills the processes at both ends of the VXLAN tunnel.
func TestDistantHostOutlivesFailures(t *testing.T) {
	s := sharedTenants(t)
	same, other := newStream(t, s.red, "near", s.red, distant), newStream(t, s.red, "near", s.blue, distant)
	same.passes(s.red, true)
	for _, host := range []*kit.Cluster{s.distant, s.Cluster} {
		before := host.Status().PID("node")
		host.Kill("node")
		same.passes(s.red, true)
		host.WaitRestart("node", before)
		same.passes(s.red, true)
	}
	s.podNetwork("join-projects", "--to="+s.blue.Namespace, s.red.Namespace)
	other.passes(s.red, true)
	s.podNetwork("isolate-projects", s.red.Namespace)
	other.passes(s.red, false)
	if arrived := other.more(s.red, 300); arrived > 0 {
		t.Errorf("%d datagrams arrived in another network", arrived)
	}
	if !strings.Contains(s.OC("get", "hostsubnets"), distant) {
		t.Error("the distant host has no HostSubnet")
	}
}
