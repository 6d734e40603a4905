package trace

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// event is a line in the output of `nft monitor trace`.
type event struct {
	Step
	enters bool // the packet enters the chain
}

func (e event) chainID() string { return e.Table + " " + e.Chain }

// subject identifies the chain that the rule jumps to, or the rule's own chain if it does not jump.
func (e event) subject() string {
	for _, verdict := range []string{"jump ", "goto "} {
		if chain, jumps := strings.CutPrefix(e.Verdict, verdict); jumps {
			return e.Table + " " + chain
		}
	}
	return e.chainID()
}

// parse parses a line of `nft monitor trace`, such as
//
//	trace id 1a2d3711 ip filter input packet: iif "eth0" ip saddr 192.0.2.1 ...
//	trace id 1a2d3711 ip filter input rule tcp dport 22 accept (verdict accept)
//	trace id 1a2d3711 ip filter input verdict continue
//	trace id 1a2d3711 ip filter input policy accept
func parse(line string) (e event, ok bool) {
	words := strings.SplitN(line, " ", 7)
	if len(words) < 7 || words[0] != "trace" || words[1] != "id" {
		return event{}, false
	}
	e.Table, e.Chain = words[3]+" "+words[4], words[5]
	kind, rest, _ := strings.Cut(strings.TrimSpace(words[6]), " ")
	switch kind {
	case "packet:":
		e.enters = true
	case "rule":
		at := strings.LastIndex(rest, " (verdict ")
		if at < 0 {
			return event{}, false
		}
		e.Rule, e.Verdict = rest[:at], strings.TrimSuffix(rest[at+len(" (verdict "):], ")")
	case "policy":
		e.Rule, e.Verdict = "policy", rest
	case "verdict":
		return event{}, false // the end of a chain that another chain jumped to
	default:
		return event{}, false
	}
	return e, true
}

// chainComments returns the comments on all chains, keyed by the names of the table and the chain.
func chainComments(ctx context.Context) (map[string]string, error) {
	output, err := exec.CommandContext(ctx, "nft", "list", "chains").Output()
	if err != nil {
		return nil, fmt.Errorf("list chains: %w", err)
	}
	comments := map[string]string{}
	table, chain := "", ""
	for line := range strings.Lines(string(output)) {
		switch kind, rest, _ := strings.Cut(strings.TrimSpace(line), " "); kind {
		case "table":
			table = strings.TrimSuffix(rest, " {")
		case "chain":
			chain = strings.TrimSuffix(rest, " {")
		case "comment":
			comments[table+" "+chain] = strings.Trim(rest, `"`)
		}
	}
	return comments, nil
}
