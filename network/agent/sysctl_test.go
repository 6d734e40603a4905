package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIPv6SettingsAreRestored starts and stops a host's network. The host has an uplink that
// accepts router advertisements, and a device that an administrator has configured to forward
// packets.
func TestIPv6SettingsAreRestored(t *testing.T) {
	for _, device := range []string{"uplink6", "router6"} {
		output(t, "ip", "link", "add", device, "type", "bridge")
		t.Cleanup(func() { output(t, "ip", "link", "delete", device) })
	}
	reset := func() {
		output(t, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=0", "net.ipv6.conf.uplink6.accept_ra=1", "net.ipv6.conf.router6.forwarding=1")
	}
	reset()
	settings := func() string {
		return strings.Join(strings.Fields(output(t, "sysctl", "-n",
			"net.ipv6.conf.all.forwarding", "net.ipv6.conf.uplink6.forwarding", "net.ipv6.conf.router6.forwarding", "net.ipv6.conf.uplink6.accept_ra")), " ")
	}
	before := settings()
	a := newAgent(t, node("10.128.2.0/23"))
	a.DualStack, a.SysctlRecord = testNetworks, filepath.Join(t.TempDir(), "sysctls.json")
	for range 2 { // the second start finds the settings that the first start changed
		agent := serve(t, a)
		if got := settings(); got != "1 1 1 2" {
			t.Errorf("the settings are %s", got)
		}
		agent.Stop()
	}
	config := leftovers
	config.SysctlRecord = a.SysctlRecord
	clean := func() {
		t.Helper()
		if err := Cleanup(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	clean()
	if got := settings(); got != before || before != "0 0 1 1" {
		t.Errorf("after the removal of the network, the settings are %s instead of %s", got, before)
	}
	if _, err := os.Stat(a.SysctlRecord); !os.IsNotExist(err) {
		t.Errorf("the record remains: %v", err)
	}

	// After a reboot, a record describes settings that no longer exist.
	for name, tt := range map[string]struct {
		record string
		starts bool
	}{
		"removed before the network starts": {`{"boot": "other", "settings": [{"path": "/proc/sys/net/ipv6/conf/router6/forwarding", "previous": "0", "value": "1"}]}`, false},
		"removed after the network starts":  {`{"boot": "other", "settings": []}`, true},
	} {
		reset()
		if err := os.WriteFile(a.SysctlRecord, []byte(tt.record), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.starts {
			serve(t, a).Stop()
		}
		clean()
		if got := settings(); got != before {
			t.Errorf("record of another boot, %s: the settings are %s instead of %s", name, got, before)
		}
	}

	// A host that already forwards packets continues to do so.
	output(t, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
	serve(t, a).Stop()
	clean()
	if got := settings(); !strings.HasPrefix(got, "1 1 1") {
		t.Errorf("the settings of the administrator are now %s", got)
	}
	output(t, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=0")
}

// TestForwardingIsRestored starts and stops the network on hosts that already forwarded IPv4
// packets, and on hosts that did not.
func TestForwardingIsRestored(t *testing.T) {
	forwarding := func() string { return strings.TrimSpace(output(t, "sysctl", "-n", "net.ipv4.ip_forward")) }
	for name, tt := range map[string]struct {
		before string
		bridge bool // another program has a bridge
		after  string
	}{
		"host that did not forward": {"0", false, "0"},
		"host that forwarded":       {"1", false, "1"},
		"host with another bridge":  {"0", true, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			output(t, "sysctl", "-qw", "net.ipv4.ip_forward="+tt.before)
			if tt.bridge {
				output(t, "ip", "link", "add", "docker9", "type", "bridge")
				t.Cleanup(func() { output(t, "ip", "link", "delete", "docker9") })
			}
			config := leftovers
			config.SysctlRecord = filepath.Join(t.TempDir(), "sysctls.json")
			a := newAgent(t, node("10.128.2.0/23"))
			a.SysctlRecord = config.SysctlRecord
			agent := serve(t, a)
			if got := forwarding(); got != "1" {
				t.Errorf("while the network runs, ip_forward is %s", got)
			}
			agent.Stop()
			if err := Cleanup(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if got := forwarding(); got != tt.after {
				t.Errorf("after the removal of the network, ip_forward is %s, want %s", got, tt.after)
			}
		})
	}
}
