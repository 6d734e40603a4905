package multitenant

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/test/kit"
)

// setTransport sets slipway.podTransport of all hosts and restarts their node processes.
func (s tenants) setTransport(t *testing.T, transport string) {
	t.Helper()
	for _, host := range []*kit.Host{s.Cluster, s.second, s.distant} {
		content, err := os.ReadFile(host.NodeFile())
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{}
		if err := yaml.Unmarshal(content, &config); err != nil {
			t.Fatal(err)
		}
		settings, _ := config["slipway"].(map[string]any)
		if settings == nil {
			settings = map[string]any{}
			config["slipway"] = settings
		}
		settings["podTransport"] = transport
		if content, err = yaml.Marshal(config); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(host.NodeFile(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		host.Kill("node")
	}
}

// pair returns requests from the pod "near" to another pod, over IPv4 and over IPv6.
func (s tenants) pair(to string) []request {
	marker := "I am " + s.blue.marker(to)
	return []request{
		{s.blue, "near", join(s.blue.address(to), 8080), marker}, {s.blue, "near", join(s.blue.second6(to), 8080), marker},
	}
}

// checkInVXLAN checks that packets to a host of the same segment are in VXLAN, with the network ID.
func (s tenants) checkInVXLAN(t *testing.T) {
	t.Helper()
	capture, err := s.second.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	for i, r := range s.pair("far") {
		ends := [2]netip.Addr{s.blue.address("near"), s.blue.address("far")}
		if i > 0 {
			ends = [2]netip.Addr{s.blue.second6("near"), s.blue.second6("far")}
		}
		s.expect(r, true)
		packet, err := capture.Next(vxlanPort, func(p vxlanpacket.Packet) bool { return p.Source == ends[0] && p.Target == ends[1] })
		if err != nil || fmt.Sprint(packet.VNI) != s.blue.netID() {
			t.Errorf("VXLAN from %s to %s: network ID %d, %v, want %s", ends[0], ends[1], packet.VNI, err, s.blue.netID())
		}
	}
}

// TestTransportsCarryBothFamilies changes how packets reach other hosts while pods run.
func TestTransportsCarryBothFamilies(t *testing.T) {
	s := newTenants(t)
	foreign := request{s.red, "near", join(s.blue.second6("far"), 8080), ""}
	t.Cleanup(func() {
		s.setTransport(t, "auto")
		for _, r := range append(s.pair("far"), s.pair(distant)...) {
			s.expect(r, true)
		}
	})

	s.setTransport(t, "vxlan")
	for _, r := range s.pair(distant) {
		s.expect(r, true)
	}
	s.checkInVXLAN(t)
	s.expect(foreign, false)

	// Without VXLAN, hosts behind a router are not connected.
	s.setTransport(t, "host-gw")
	for _, r := range s.pair(distant) {
		s.expect(r, false)
	}
	for _, r := range s.pair("far") {
		s.expect(r, true)
	}
	s.expect(foreign, false)
}
