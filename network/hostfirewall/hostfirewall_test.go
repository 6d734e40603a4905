package hostfirewall

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func ensure(t *testing.T) {
	t.Helper()
	exceptions := Exceptions{Bridge: "slipway0", DNSAddress: netip.MustParseAddr("169.254.20.10"), Ports: []int{8443, 5000}}
	for _, family := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
		if err := Ensure(t.Context(), family, exceptions); err != nil {
			t.Fatal(err)
		}
	}
}

// createFirewall creates the chains that ufw creates, with an administrator's rules.
func createFirewall(t *testing.T, policy string) {
	t.Helper()
	for _, family := range []string{"ip", "ip6"} {
		hosttest.Run(t, "nft add table "+family+" filter")
		hosttest.Run(t, "nft 'add chain "+family+" filter FORWARD { type filter hook forward priority 0; policy "+policy+"; }'")
		hosttest.Run(t, "nft 'add chain "+family+" filter INPUT { type filter hook input priority 0; policy "+policy+"; }'")
		hosttest.Run(t, "nft add rule "+family+" filter FORWARD tcp dport 25 drop")
	}
	t.Cleanup(func() { hosttest.Run(t, "nft delete table ip filter; nft delete table ip6 filter") })
}

// rules returns the rules of a chain, without counters.
func rules(t *testing.T, family, chain string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(hosttest.Run(t, "nft -s list chain "+family+" filter "+chain)) {
		if strings.Contains(line, "accept comment") || strings.Contains(line, "dport 25") {
			lines = append(lines, strings.TrimSuffix(strings.TrimSpace(line), ` comment "`+comment+`"`))
		}
	}
	return lines
}

func TestPodTrafficPassesChainsThatDrop(t *testing.T) {
	createFirewall(t, "drop")
	forwarded := []string{"tcp dport 25 drop", `iifname "slipway0" counter accept`, `oifname "slipway0" counter accept`}
	ports := []string{`iifname "slipway0" tcp dport 8443 counter accept`, `iifname "slipway0" tcp dport 5000 counter accept`}
	dns := `iifname "slipway0" ip daddr 169.254.20.10 meta l4proto { tcp, udp } th dport 53 counter accept`
	want := map[string][]string{
		"ip FORWARD": forwarded, "ip6 FORWARD": forwarded,
		"ip INPUT": append([]string{dns}, ports...), "ip6 INPUT": ports,
	}
	for name, damage := range map[string]string{
		"nothing":        "true",
		"half of rules":  "nft delete rule ip filter FORWARD handle $(nft -a list chain ip filter FORWARD | sed -n 's/.*oifname.*handle //p' | head -1)",
		"flush of INPUT": "nft flush chain ip filter INPUT",
	} {
		t.Run(name, func(t *testing.T) {
			ensure(t)
			hosttest.Run(t, damage)
			ensure(t)
			ensure(t)
			for chain, lines := range want {
				family, name, _ := strings.Cut(chain, " ")
				if got := rules(t, family, name); strings.Join(got, "\n") != strings.Join(lines, "\n") {
					t.Errorf("rules of %s:\n%s", chain, strings.Join(got, "\n"))
				}
			}
		})
	}
	if err := Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	for chain := range want {
		family, name, _ := strings.Cut(chain, " ")
		if got := rules(t, family, name); strings.Contains(strings.Join(got, " "), "slipway0") {
			t.Errorf("rules of %s after removal: %q", chain, got)
		}
	}
}

func TestChainsThatAcceptGetNoRules(t *testing.T) {
	ensure(t) // no table exists
	if tables := hosttest.Run(t, "nft list tables"); tables != "" {
		t.Errorf("tables: %s", tables)
	}
	createFirewall(t, "drop")
	ensure(t)
	hosttest.Run(t, "nft 'chain ip filter FORWARD { policy accept; }'")
	ensure(t)
	if got := rules(t, "ip", forward); len(got) != 1 {
		t.Errorf("rules of a chain that accepts: %q", got)
	}
}
