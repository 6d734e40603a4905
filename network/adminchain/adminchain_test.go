package adminchain

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func ensure(t *testing.T, bridge string) {
	t.Helper()
	ensureFor(t, bridge, "10.128.0.0/14")
}

func ensureFor(t *testing.T, bridge string, networks ...string) {
	t.Helper()
	var pods []netip.Prefix
	for _, network := range networks {
		pods = append(pods, netip.MustParsePrefix(network))
	}
	if err := Ensure(t.Context(), bridge, pods); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, withRules bool) {
	t.Helper()
	if err := Remove(context.Background(), withRules); err != nil {
		t.Fatal(err)
	}
}

// rules returns the rules of FORWARD that jump to the chain, and the rules in the chain.
func rules(t *testing.T) (forward, chain []string) {
	t.Helper()
	for line := range strings.Lines(hosttest.Run(t, "nft -s list table ip filter")) {
		switch line = strings.TrimSpace(line); {
		case strings.Contains(line, "jump "+Name):
			forward = append(forward, line)
		case strings.HasPrefix(line, "ip daddr"):
			chain = append(chain, line)
		}
	}
	return forward, chain
}

func TestRulesOfTheAdministratorStay(t *testing.T) {
	t.Cleanup(func() { hosttest.Run(t, "nft delete table ip filter") })
	ensure(t, "slipway0")
	hosttest.Run(t, "nft add rule ip filter "+Name+" ip daddr 192.0.2.1 drop")
	for name, damage := range map[string]string{
		"nothing":       "true",
		"flushed":       "nft flush chain ip filter FORWARD",
		"flushed twice": "nft flush chain ip filter FORWARD; nft add rule ip filter FORWARD ip daddr 192.0.2.2 drop",
	} {
		hosttest.Run(t, damage)
		for range 2 {
			ensure(t, "slipway0")
		}
		forward, chain := rules(t)
		if len(forward) != 1 || !strings.Contains(forward[0], `iifname "slipway0" oifname != "slipway0" ip daddr != 10.128.0.0/14`) {
			t.Errorf("%s: rules of FORWARD: %q", name, forward)
		}
		if len(chain) == 0 || chain[len(chain)-1] != "ip daddr 192.0.2.1 drop" {
			t.Errorf("%s: rules of the chain: %q", name, chain)
		}
	}
	ensure(t, "other0") // the bridge has a new name
	if forward, _ := rules(t); len(forward) != 1 || !strings.Contains(forward[0], `iifname "other0"`) {
		t.Errorf("rules of FORWARD: %q", forward)
	}
}

func TestRemoveKeepsRulesOfAdministrator(t *testing.T) {
	tables := func() string { return hosttest.Run(t, "nft list tables") }
	ensure(t, "slipway0")
	remove(t, false)
	if got := tables(); got != "" {
		t.Errorf("tables without rules: %q", got)
	}
	remove(t, false) // neither the chain nor the rule exists

	ensure(t, "slipway0")
	hosttest.Run(t, "nft add rule ip filter "+Name+" ip daddr 192.0.2.1 drop")
	remove(t, false)
	if forward, chain := rules(t); len(forward) != 0 || len(chain) != 1 {
		t.Errorf("rules of the administrator: %q %q", forward, chain)
	}
	ensure(t, "slipway0")
	hosttest.Run(t, "nft add rule ip filter FORWARD ip daddr 192.0.2.2 drop")
	remove(t, true)
	if content := hosttest.Run(t, "nft list table ip filter"); strings.Contains(content, Name) || !strings.Contains(content, "192.0.2.2") {
		t.Errorf("table with rules of others:\n%s", content)
	}
	hosttest.Run(t, "nft flush chain ip filter FORWARD")
	remove(t, true)
	if got := tables(); got != "" {
		t.Errorf("tables: %q", got)
	}
}

// TestIptablesChangesTheChain uses iptables, as administrators do, or nft on a machine without
// iptables.
func TestIptablesChangesTheChain(t *testing.T) {
	add, list := "iptables -A "+Name+" -d 192.0.2.1 -m limit --limit 1/s -j REJECT", "iptables -S"
	if version, err := exec.Command("iptables", "--version").Output(); err != nil || !strings.Contains(string(version), "nf_tables") {
		add, list = "nft add rule ip filter "+Name+" ip daddr 192.0.2.1 limit rate 1/second reject", "nft list table ip filter"
	}
	t.Cleanup(func() { remove(t, true) })
	ensure(t, "slipway0")
	hosttest.Run(t, add)
	ensure(t, "slipway0")
	if output := hosttest.Run(t, list); strings.Count(output, "192.0.2.1") != 1 || !strings.Contains(output, Name) {
		t.Errorf("%s:\n%s", list, output)
	}
}

// TestSeveralNetworksOfPods adds a second pod network and removes it again.
func TestSeveralNetworksOfPods(t *testing.T) {
	t.Cleanup(func() { remove(t, true) })
	separate := func() string {
		output := hosttest.Run(t, "nft -s list table ip filter")
		_, chain, _ := strings.Cut(output, "chain "+separator+" {")
		chain, _, _ = strings.Cut(chain, "}")
		return strings.Join(strings.Fields(chain), " ")
	}
	ensureFor(t, "slipway0", "10.128.0.0/14")
	hosttest.Run(t, "nft add rule ip filter "+Name+" ip daddr 192.0.2.1 drop")
	for range 2 {
		ensureFor(t, "slipway0", "10.128.0.0/14", "10.64.0.0/16")
	}
	const want = "ip daddr 10.128.0.0/14 counter return ip daddr 10.64.0.0/16 counter return counter jump " + Name
	if got := separate(); got != want {
		t.Errorf("the chain %s has the rules %q, want %q", separator, got, want)
	}
	forward, chain := rules(t)
	if len(forward) != 1 || len(chain) != 3 || !slices.Contains(chain, "ip daddr 192.0.2.1 drop") {
		t.Errorf("rules that jump to the chain: %q; rules of chains: %q", forward, chain)
	}
	if jumps := hosttest.Run(t, "nft -s list chain ip filter FORWARD"); strings.Count(jumps, `oifname != "slipway0" counter jump `+separator) != 1 {
		t.Errorf("FORWARD:\n%s", jumps)
	}
	ensureFor(t, "slipway0", "10.128.0.0/14")
	if forward, _ := rules(t); separate() != "" || len(forward) != 1 || !strings.Contains(forward[0], "ip daddr != 10.128.0.0/14") {
		t.Errorf("with one network: %q, %q", separate(), forward)
	}
}
