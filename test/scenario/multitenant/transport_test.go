package multitenant

import (
	"context"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/test/kit"
)

// setTransport sets slipway.podTransport on all hosts and restarts their node processes.
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

// pair returns requests from the blue pod "near" to another blue pod, over IPv4 and IPv6.
func (s tenants) pair(to string) []request {
	marker := "I am " + s.blue.marker(to)
	return []request{
		{s.blue, "near", join(s.blue.address(to), 8080), marker}, {s.blue, "near", join(s.blue.second6(to), 8080), marker},
	}
}

// waitInVXLAN waits until packets to a host in the same segment are encapsulated in VXLAN with the
// project's network ID. The wait is necessary because the hosts change their routes only after
// their node processes have started.
func (s tenants) waitInVXLAN(t *testing.T) {
	t.Helper()
	capture, err := s.second.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	for i, r := range s.pair("far") {
		source, target := s.blue.address("near"), s.blue.address("far")
		if i > 0 {
			source, target = s.blue.second6("near"), s.blue.second6("far")
		}
		s.WaitFor(fmt.Sprintf("VXLAN from %s to %s", source, target), func(context.Context) error {
			if err := r.send(); err != nil {
				return err
			}
			packet, err := capture.Next(vxlanPort, func(p vxlanpacket.Packet) bool { return p.Source == source && p.Target == target })
			if err == nil && fmt.Sprint(packet.VNI) != s.blue.netID() {
				err = fmt.Errorf("the network ID is %d, want %s", packet.VNI, s.blue.netID())
			}
			return err
		})
	}
}

// TestTransportsCarryBothFamilies changes the transport for packets to other hosts while pods run.
func TestTransportsCarryBothFamilies(t *testing.T) {
	s := sharedTenants(t)
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
	s.waitInVXLAN(t)
	s.expect(foreign, false)

	// Without VXLAN, pods on hosts behind a router must not be reachable.
	s.setTransport(t, "host-gw")
	for _, r := range s.pair(distant) {
		s.expect(r, false)
	}
	for _, r := range s.pair("far") {
		s.expect(r, true)
	}
	s.expect(foreign, false)
}
