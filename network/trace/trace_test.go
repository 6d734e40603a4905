package trace

import (
	"context"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// rules is a table that drops TCP and UDP packets to all ports of 127.0.0.2 except port 81.
const rules = `table ip policies {
	map pods { type ipv4_addr : verdict; elements = { 127.0.0.2 : jump pod }; }
	chain web { comment "shop/web"; tcp dport 81 accept; udp dport 81 accept; }
	chain pod { jump web; counter drop; }
	chain input { type filter hook input priority 0; ip daddr vmap @pods; }
}`

func TestFollowReturnsDecidingRule(t *testing.T) {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("create table: %v\n%s", err, output)
	}
	t.Cleanup(func() {
		if err := exec.Command("nft", "delete", "table", "ip", "policies").Run(); err != nil {
			t.Error(err)
		}
	})
	passed := []Step{
		{"ip policies", "input", "ip daddr vmap @pods", "jump pod", ""},
		{"ip policies", "pod", "jump web", "jump web", "shop/web"},
	}
	from, to := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	drop := Step{"ip policies", "pod", "counter packets 0 bytes 0 drop", "drop", ""}
	for packet, last := range map[Packet]Step{
		{from, to, 81, false}: {"ip policies", "web", "tcp dport 81 accept", "accept", "shop/web"},
		{from, to, 82, false}: drop,
		{from, to, 81, true}:  {"ip policies", "web", "udp dport 81 accept", "accept", "shop/web"},
		{from, to, 82, true}:  drop,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		steps, err := Follow(ctx, packet, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			network := map[bool]string{false: "tcp4", true: "udp4"}[packet.UDP]
			if conn, err := (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(to, packet.Port).String()); err == nil {
				_, _ = conn.Write([]byte{0})
				_ = conn.Close()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range steps { // the counter also counts attempts before nft was ready
			if strings.HasPrefix(steps[i].Rule, "counter packets") {
				steps[i].Rule = drop.Rule
			}
		}
		if diff := cmp.Diff(append(passed[:2:2], last), steps); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", packet, diff)
		}
		if drops := steps[len(steps)-1].Drops(); drops != (packet.Port == 82) {
			t.Errorf("%+v: dropped %t", packet, drops)
		}
	}
	if output, err := exec.Command("nft", "list", "tables").Output(); err != nil || strings.Contains(string(output), table) {
		t.Errorf("tables after the trace: %s, %v", output, err)
	}
}

func TestPacketThatNeverArrivesHasNoSteps(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	steps, err := Follow(ctx, Packet{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), 80, false}, func(context.Context) {})
	if err != nil || len(steps) > 0 {
		t.Errorf("%v, %v", steps, err)
	}
}

func TestParseLinesOfNft(t *testing.T) {
	for line, want := range map[string]event{
		`trace id 1a2d3711 ip filter in packet: iif "lo" ip saddr 192.0.2.1`: {Step{Table: "ip filter", Chain: "in"}, true},
		`trace id 1a2d3711 ip filter in policy accept `:                      {Step{"ip filter", "in", "policy", "accept", ""}, false},
		`trace id 1a2d3711 inet f c rule tcp dport 22 (verdict goto d)`:      {Step{"inet f", "c", "tcp dport 22", "goto d", ""}, false},
	} {
		if got, ok := parse(line); !ok || got != want {
			t.Errorf("%s: %+v, %t", line, got, ok)
		}
	}
	for _, line := range []string{"", "trace id 1a2d3711 ip filter in verdict continue ", "# new generation 5 by process 3", "trace id 1 ip filter in rule no verdict"} {
		if got, ok := parse(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
