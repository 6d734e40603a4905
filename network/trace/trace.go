// Package trace follows a packet through this host's nftables rules, and reports the rule that
// determines whether the packet is accepted. The kernel reports every rule that the packet matches,
// so the result includes rules of other programs.
package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Packet is the first packet of a TCP connection, or a UDP datagram. Both addresses have the same
// IP family.
type Packet struct {
	From, To netip.Addr
	Port     uint16
	UDP      bool
}

// match returns the nftables expression that matches the packet's protocol and port.
func (p Packet) match() string {
	if p.UDP {
		return fmt.Sprintf("udp dport %d", p.Port)
	}
	return fmt.Sprintf("tcp dport %d tcp flags & (syn | ack) == syn", p.Port)
}

func (p Packet) family() ipfamily.Family { return ipfamily.Of(p.From) }

// Step is a rule that the packet matches, or a chain's policy that applies to the packet.
type Step struct {
	Table, Chain string
	// Rule is the text of the rule, or "policy".
	Rule string
	// Verdict is the kernel's verdict, such as accept, drop, continue or jump CHAIN.
	Verdict string
	// Comment is the comment on the chain that the rule jumps to, or on the rule's own chain. An
	// example is the name of a network policy. It is "" if the chain has no comment.
	Comment string
}

// Drops reports whether the step drops the packet.
func (s Step) Drops() bool { return s.Verdict == "drop" || strings.HasPrefix(s.Rule, "reject") }

const (
	// table is the name of the table that marks the packet while Follow runs.
	table = "slipway-trace"
	// quietPeriod is the time without a report after which the packet has left the host or is
	// stuck.
	quietPeriod = 500 * time.Millisecond
	// sendInterval is the time between two attempts. Several attempts can be necessary, because nft
	// does not report when it is ready.
	sendInterval = time.Second
)

// Follow repeatedly calls send, which sends the packet, until the kernel has reported the packet's
// path on this host. It returns no steps if ctx is done before that. It requires root and the nft
// program.
func Follow(ctx context.Context, packet Packet, send func(context.Context)) (steps []Step, err error) {
	nft, err := knftables.New(packet.family().Table(), table)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w; install the package nftables", table, err)
	}
	if err := mark(ctx, nft, packet); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unmark(context.WithoutCancel(ctx), nft)) }()
	comments, err := chainComments(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	monitor := exec.CommandContext(ctx, "nft", "monitor", "trace")
	output, err := monitor.StdoutPipe()
	if err == nil {
		err = monitor.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start nft: %w", err)
	}
	lines, sent := make(chan string), make(chan struct{})
	go func() { defer close(lines); readLines(ctx, output, lines) }()
	go func() { defer close(sent); repeat(ctx, send) }()
	steps = collect(ctx, lines, comments)
	cancel()
	<-sent
	for range lines { //nolint:revive // drain; the reader ends with the process
	}
	_ = monitor.Wait() // nft is killed at the end
	return steps, nil
}

// mark creates the table. The table's chains precede all other chains at their hooks.
func mark(ctx context.Context, nft knftables.Interface, packet Packet) error {
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Flush(&knftables.Table{})
	for _, hook := range []knftables.BaseChainHook{knftables.PreroutingHook, knftables.OutputHook} {
		kind, priority := knftables.FilterType, knftables.BaseChainPriority("-350")
		tx.Add(&knftables.Chain{Name: string(hook), Type: &kind, Hook: &hook, Priority: &priority})
		tx.Add(&knftables.Rule{Chain: string(hook), Rule: fmt.Sprintf(
			"%[1]s saddr %[2]s %[1]s daddr %[3]s %[4]s meta nftrace set 1", packet.family().Header(), packet.From, packet.To, packet.match())})
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("mark packets: %w", err)
	}
	return nil
}

func unmark(ctx context.Context, nft knftables.Interface) error {
	tx := nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("remove nftables table %q: %w", table, err)
	}
	return nil
}

// repeat calls send at intervals until ctx is done.
func repeat(ctx context.Context, send func(context.Context)) {
	ticker := time.NewTicker(sendInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		send(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// readLines sends the lines from a reader to a channel until the end of the input.
func readLines(ctx context.Context, reader io.Reader, lines chan<- string) {
	for scanner := bufio.NewScanner(reader); scanner.Scan(); {
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
		}
	}
}

// collect returns the steps of the first packet.
func collect(ctx context.Context, lines <-chan string, comments map[string]string) (steps []Step) {
	entered := map[string]bool{} // base chains that the packet has entered
	var quiet <-chan time.Time
	for {
		var line string
		var open bool
		select {
		case line, open = <-lines:
		case <-quiet:
			return steps
		case <-ctx.Done():
			return steps
		}
		event, ok := parse(line)
		if !open || ok && event.enters && entered[event.chainID()] {
			return steps // the line belongs to a packet from the next attempt
		}
		if !ok {
			continue
		}
		quiet = time.After(quietPeriod)
		if event.enters {
			entered[event.chainID()] = true
			continue
		}
		if _, name, _ := strings.Cut(event.Table, " "); name == table {
			continue
		}
		event.Comment = comments[event.subject()]
		if steps = append(steps, event.Step); event.Drops() {
			return steps
		}
	}
}
