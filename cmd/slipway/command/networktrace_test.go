package command

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/trace"
)

func TestTraceDrawsConclusion(t *testing.T) {
	const table = "ip slipway-policy"
	accept := trace.Step{Table: table, Chain: "forward", Rule: "policy", Verdict: "accept"}
	jump := trace.Step{Table: table, Chain: "pods", Rule: "ip daddr 10.128.0.7", Verdict: "jump pod-7", Comment: "shop/deny-all"}
	again := trace.Step{Table: table, Chain: "pod-7", Rule: "tcp dport 80", Verdict: "continue", Comment: "shop/deny-all"}
	other := trace.Step{Table: "ip nat", Chain: "prerouting", Rule: "fib daddr type local", Verdict: "continue", Comment: "bank/other"}
	drop := trace.Step{Table: table, Chain: "pod-7", Rule: "drop", Verdict: "drop"}
	for name, tt := range map[string]struct {
		steps    []trace.Step
		response error
		want     string // part of the output or, if the command fails, of the error
		err      error  // nil if the command succeeds
	}{
		"server responds":       {[]trace.Step{accept}, nil, "No rule drops the packet, and the server responds.", nil},
		"server refuses":        {[]trace.Step{accept}, syscall.ECONNREFUSED, "nothing listens on the port", nil},
		"no response":           {[]trace.Step{accept}, errors.New("timeout"), "trace it on the host of the other pod", nil},
		"packet of another":     {[]trace.Step{accept}, errNoPacket, "trace it on the host of the other pod", nil},
		"rule drops":            {[]trace.Step{accept, drop}, nil, "Dropped by table ip slipway-policy, chain pod-7.\n", errDropped},
		"rule rejects":          {[]trace.Step{{Table: "inet filter", Chain: "input", Rule: "reject with tcp reset"}}, nil, "Dropped by table inet filter, chain input.\n", errDropped},
		"policies are isolated": {[]trace.Step{other, jump, again, drop}, nil, "Policies that apply and do not allow it: shop/deny-all.\n", errDropped},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := printTrace(&out, tt.steps, tt.response); !errors.Is(err, tt.err) {
				t.Errorf("got error %v", err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("%q is missing in\n%s", tt.want, out.String())
			}
			if rows := strings.Count(out.String(), "\n"); !strings.HasPrefix(out.String(), "TABLE ") || rows != len(tt.steps)+3 {
				t.Errorf("the output has %d lines:\n%s", rows, out.String())
			}
		})
	}
	var out strings.Builder
	if err := printTrace(&out, nil, nil); err == nil || !strings.Contains(err.Error(), "no packet reached the rules of this host") || out.Len() > 0 {
		t.Errorf("without steps: %v, output %q", err, out.String())
	}
}

func TestFamilyOfTracedConnection(t *testing.T) {
	for ends, want := range map[string]ipfamily.Family{
		"shop/web shop/db": ipfamily.IPv4, "shop/web 172.30.0.1": ipfamily.IPv4, "shop/web fd02::1": ipfamily.IPv6, "fd01::7 shop/web": ipfamily.IPv6,
	} {
		if got := familyOf(strings.Fields(ends)...); got != want {
			t.Errorf("%s: got %v", ends, got)
		}
	}
}

func TestRatesHaveReadableUnits(t *testing.T) {
	for bits, want := range map[float64]string{0: "0.00 kbit/s", 999_000: "999.00 kbit/s", 1e6: "1.00 Mbit/s", 2.5e9: "2.50 Gbit/s"} {
		if got := formatRate(bits); got != want {
			t.Errorf("%g bits per second: got %q, want %q", bits, got, want)
		}
	}
}
