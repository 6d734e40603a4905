package f5

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/bigiptest"
	"github.com/slipway-platform/slipway/router/environment"
)

func TestInvalidVariablesAreReportedTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, variables := range map[string]map[string]string{
		"HOSTNAME: a router":                 {},
		"USERNAME: a router":                 {"HOSTNAME": "f5"},
		"PASSWORD: a router":                 {"HOSTNAME": "f5", "USERNAME": "admin"},
		"must be a host":                     {"HOSTNAME": "https://f5"},
		"PARTITION_PATH to \"a b\"":          {"PARTITION_PATH": "a b"},
		"HTTP_VSERVER to \"a/b\"":            {"HTTP_VSERVER": "a/b"},
		"HTTPS_VSERVER to \"x y\"":           {"HTTPS_VSERVER": "x y"},
		"needs both":                         {"INTERNAL_ADDRESS": "192.0.2.9"},
		"INTERNAL_ADDRESS to \"fd00::1\"":    {"INTERNAL_ADDRESS": "fd00::1", "VXLAN_GW_CIDR": "10.131.0.1/14"},
		"VXLAN_GW_CIDR to \"10.128.0.0/14\"": {"INTERNAL_ADDRESS": "192.0.2.9", "VXLAN_GW_CIDR": "10.128.0.0/14"},
		"PRIVKEY: open /nowhere":             {"PRIVKEY": "/nowhere"},
		"PRIVKEY \"" + file:                  {"PRIVKEY": file},
	} {
		all := map[string]string{prefix + "PASSWORD": bigiptest.Password}
		if strings.HasPrefix(want, "PASSWORD") {
			all = map[string]string{}
		}
		for name, value := range variables {
			all[prefix+name] = value
		}
		s, err := environment.Read(all)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read(s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), bigiptest.Password) {
			t.Errorf("%v: %v, want %q", variables, err, want)
		}
	}
}

func TestErrorsOfApplianceNameRemedy(t *testing.T) {
	native := map[string]string{"INTERNAL_ADDRESS": "192.0.2.9", "VXLAN_GW_CIDR": "10.131.0.1/14"}
	for want, test := range map[string]struct {
		options   bigiptest.Options
		variables map[string]string
	}{
		"check ROUTER_EXTERNAL_HOST_USERNAME":   {variables: map[string]string{"USERNAME": "nobody"}},
		"failed to verify certificate":          {variables: map[string]string{"INSECURE": "false"}},
		"no virtual server \"/Common/missing\"": {variables: map[string]string{"HTTP_VSERVER": "missing"}},
		"needs 11.4 or newer":                   {options: bigiptest.Options{Version: "11.3.0"}},
		"set up a ramp node":                    {options: bigiptest.Options{Version: "11.6.0"}, variables: native},
		"needs the license sdn-services":        {options: bigiptest.Options{Unlicensed: true}, variables: native},
		"connection refused":                    {variables: map[string]string{"HOSTNAME": "127.0.0.1:1"}},
	} {
		var log bytes.Buffer
		err := New(configOf(t, bigiptest.New(t, test.options), test.variables)).Sync(t.Context(), newShop(t).state())
		slog.New(slog.NewTextHandler(&log, nil)).Error("cannot configure the appliance", "error", err)
		if err == nil || !strings.Contains(log.String(), strings.ReplaceAll(want, `"`, `\"`)) || strings.Contains(log.String(), bigiptest.Password) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOlderApplianceServesRoutes(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{Version: "11.4.1"})
	sync(t, New(configOf(t, simulated, nil)), simulated, s.state(s.allKinds(t)...))
	checkPages(t, s, simulated)
}

// An administrator's profile has the server name of a route's host, so the appliance rejects the
// route's profile.
func TestRejectedObjectDoesNotStopOthers(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
	s.serve(t, "plain", 1)
	simulated.AttachProfile("/Common/company", "edge.example.com")
	edge, other := &routev1.TLSConfig{Termination: "edge"}, &routev1.TLSConfig{Termination: "edge"}
	edge.Certificate, edge.Key = s.pem(t, "edge.example.com")
	other.Certificate, other.Key = s.pem(t, "other.example.com")
	state := s.state(route("edge.example.com", "", "plain", edge), route("other.example.com", "", "plain", other))
	a := New(configOf(t, simulated, nil))
	for range 2 {
		if err := a.Sync(t.Context(), state); err == nil || !strings.Contains(err.Error(), "same server name") {
			t.Errorf("the rejection is not reported: %v", err)
		}
	}
	if got := s.get(simulated, "https://other.example.com/"); got != "plain" {
		t.Errorf("the other route responds: %s", got)
	}
}

func TestTunnelFollowsNodesAndPort(t *testing.T) {
	var network bigiptest.Network
	simulated := bigiptest.New(t, bigiptest.Options{Network: func(n bigiptest.Network) { network = n }})
	variables := map[string]string{"INTERNAL_ADDRESS": "192.0.2.9", "VXLAN_GW_CIDR": "10.131.0.1/14"}
	a := New(configOf(t, simulated, variables))
	state := newShop(t).state()
	for _, nodes := range [][]string{{"192.0.2.1", "192.0.2.2"}, {"192.0.2.2", "192.0.2.3", "fd00::3"}, {}} {
		state.Nodes = nil
		for _, node := range nodes {
			state.Nodes = append(state.Nodes, netip.MustParseAddr(node))
		}
		sync(t, a, simulated, state)
		want := min(len(nodes), 2)
		if len(network.Endpoints) != want || network.ID != 0 || network.Port != 4789 || network.Local.String() != "192.0.2.9" || network.Gateway.String() != "10.131.0.1/14" {
			t.Errorf("with the nodes %v, the network is %+v", nodes, network)
		}
		if want > 0 && network.Endpoints["0a:0a:c0:00:02:02"].String() != "192.0.2.2" {
			t.Errorf("records of the nodes %v: %v", nodes, network.Endpoints)
		}
		a.Forget()
		if changes := sync(t, a, simulated, state); changes != 0 {
			t.Errorf("the second call sends %d changes", changes)
		}
	}
	variables["VXLAN_GW_CIDR"] = "10.131.0.2/14"
	sync(t, New(configOf(t, simulated, variables)), simulated, state)
	if network.Gateway.String() != "10.131.0.2/14" {
		t.Errorf("after a change, the gateway is %s", network.Gateway)
	}
	variables["INTERNAL_ADDRESS"] = "192.0.2.10"
	a = New(configOf(t, simulated, variables))
	sync(t, a, simulated, state)
	if network.Local.String() != "192.0.2.10" || network.Gateway.String() != "10.131.0.2/14" {
		t.Errorf("after a change of the address, the network is %+v", network)
	}
	state.VXLANPort, state.Nodes = 4790, []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	sync(t, a, simulated, state)
	if network.Port != 4790 || len(network.Endpoints) != 1 {
		t.Errorf("after a change of the port, the network is %+v", network)
	}
}
