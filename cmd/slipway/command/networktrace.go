package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/trace"
)

const (
	// traceTimeout is the maximum time to wait for a packet that another host sends.
	traceTimeout = time.Minute
	// attemptTimeout is the maximum time to wait for the response to a packet.
	attemptTimeout = 700 * time.Millisecond
)

func networkTraceCommand(opts *options) *cobra.Command {
	var udp bool
	command := &cobra.Command{
		Use:   "trace FROM TO [PORT]",
		Short: "Follow a packet through the rules of this host, and print the rule that drops it",
		Long: "Follow the first packet of a TCP connection, or a UDP datagram, through the nftables rules of this host, and print the rule that accepts or\n" +
			"drops it. FROM and TO are pods of this host, NAMESPACE/NAME, or IP addresses, such as the address of a service, or of a pod on another host.\n" +
			"The port is 80 by default.\n\n" +
			"If FROM is a pod, the command sends the packet from its network. Otherwise it waits for a packet from that address. To follow a packet\n" +
			"to a pod of another host, run the command on both hosts at the same time.",
		Example: "  slipway network trace shop/web shop/database 5432\n" +
			"  slipway network trace shop/web 172.30.18.4              # to a service\n" +
			"  slipway network trace 10.128.0.7 shop/database 5432     # from a pod of another host\n" +
			"  slipway network trace shop/web fd02::4d2                # to the IPv6 address of a service\n" +
			"  slipway network trace --udp shop/web 172.30.18.7 53     # a datagram",
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			port := uint64(80)
			if len(args) == 3 {
				var err error
				if port, err = strconv.ParseUint(args[2], 10, 16); err != nil || port == 0 {
					return fmt.Errorf("port %q: must be a number from 1 to 65535", args[2])
				}
			}
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return tracePacket(ctx, opts, args[0], args[1], trace.Packet{Port: uint16(port), UDP: udp}, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	command.Flags().BoolVar(&udp, "udp", false, "send a UDP datagram of one byte instead of opening a TCP connection")
	return command
}

// tracePacket prints the rules that a packet matches. It sets the packet's addresses to those of
// two ends, which are pods or addresses.
func tracePacket(ctx context.Context, opts *options, from, to string, packet trace.Packet, out, messages io.Writer) (err error) {
	var source networkPlace
	defer func() { source.close() }()
	family := familyOf(from, to)
	if packet.From, err = source.find(ctx, opts, from, family); err != nil {
		return err
	}
	var target networkPlace
	defer func() { target.close() }()
	if packet.To, err = target.find(ctx, opts, to, family); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	response := errNoPacket
	send := func(ctx context.Context) { response = source.attempt(ctx, packet) }
	if source.namespace == nil {
		flag := map[bool]string{true: "--udp "}[packet.UDP]
		fmt.Fprintf(messages, "Waiting for a packet from %s. Send it on the host of the pod: slipway network trace %sNAMESPACE/NAME %s %d\n", packet.From, flag, packet.To, packet.Port)
		send = func(context.Context) {}
	}
	steps, err := trace.Follow(ctx, packet, send)
	if err != nil {
		return err
	}
	return printTrace(out, steps, response)
}

// errNoPacket takes the place of a response if another host sends the packet, because that host
// then receives the response.
var errNoPacket = errors.New("this host did not send the packet")

// familyOf returns the IP family of a connection: IPv6 if at least one end is an IPv6 address,
// otherwise IPv4.
func familyOf(ends ...string) ipfamily.Family {
	for _, end := range ends {
		if address, err := netip.ParseAddr(end); err == nil && address.Is6() {
			return ipfamily.IPv6
		}
	}
	return ipfamily.IPv4
}

// find opens a pod's network namespace and returns the pod's address in an IP family. name can also
// be an IP address, which has no network namespace.
func (p *networkPlace) find(ctx context.Context, opts *options, name string, family ipfamily.Family) (address netip.Addr, err error) {
	if address, err := netip.ParseAddr(name); err == nil {
		if ipfamily.Of(address) != family {
			return netip.Addr{}, fmt.Errorf("address %q: must be IPv6, like the other end", name)
		}
		return address, nil
	}
	p.pod = name
	if err := p.open(ctx, opts); err != nil {
		return netip.Addr{}, err
	}
	err = p.do(func() error {
		device, err := net.InterfaceByName(podDevice)
		if err != nil {
			return fmt.Errorf("find device of pod %s: %w", name, err)
		}
		addresses, err := device.Addrs()
		if err != nil {
			return fmt.Errorf("find address of pod %s: %w", name, err)
		}
		for _, candidate := range addresses {
			if prefix, err := netip.ParsePrefix(candidate.String()); err == nil && ipfamily.Of(prefix.Addr()) == family && !prefix.Addr().IsLinkLocalUnicast() {
				address = prefix.Addr()
			}
		}
		return nil
	})
	if err == nil && !address.IsValid() {
		err = fmt.Errorf("pod %s has no %s address", name, map[ipfamily.Family]string{ipfamily.IPv4: "IPv4", ipfamily.IPv6: "IPv6"}[family])
	}
	return address, err
}

// attempt sends the packet, so that it passes the rules of both hosts, and waits for the response.
func (p *networkPlace) attempt(ctx context.Context, packet trace.Packet) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	network := "tcp"
	if packet.UDP {
		network = "udp"
	}
	return p.do(func() error {
		conn, err := (&net.Dialer{Control: avoidDirectPath}).DialContext(ctx, network, net.JoinHostPort(packet.To.String(), strconv.Itoa(int(packet.Port))))
		if err != nil {
			return err
		}
		if packet.UDP {
			err = exchangeDatagram(ctx, conn)
		}
		return errors.Join(err, conn.Close())
	})
}

// exchangeDatagram sends a byte, and waits for a response.
func exchangeDatagram(ctx context.Context, conn net.Conn) error {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}

// avoidDirectPath makes the packets of an IPv4 connection pass through the kernel's network stack
// on both hosts. It sets an IP option, because packets with IP options do not bypass the network
// stack (see package vxlan).
func avoidDirectPath(network, _ string, conn syscall.RawConn) error {
	if network != "tcp4" {
		return nil
	}
	const nothing = "\x01\x01\x01\x01" // RFC 791, 3.1: no operation
	var optionErr error
	err := conn.Control(func(fd uintptr) {
		optionErr = unix.SetsockoptString(int(fd), unix.IPPROTO_IP, unix.IP_OPTIONS, nothing)
	})
	return errors.Join(err, optionErr)
}

// errDropped makes the command exit with status 1 after it has printed the rule.
var errDropped = errors.New("a rule of this host drops the packet")

// printTrace prints the steps of a packet, and a conclusion drawn from the steps and the response.
func printTrace(out io.Writer, steps []trace.Step, response error) error {
	if len(steps) == 0 {
		return errors.New("no packet reached the rules of this host: it was not sent, or it was dropped by the check of source addresses at the pod's device or by the VXLAN checks")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLE\tCHAIN\tVERDICT\tRULE")
	for _, step := range steps {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", step.Table, step.Chain, step.Verdict, step.Rule)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	last := steps[len(steps)-1]
	if last.Drops() {
		fmt.Fprintf(out, "Dropped by table %s, chain %s.%s\n", last.Table, last.Chain, policies(steps))
		return errDropped
	}
	switch {
	case response == nil:
		fmt.Fprintln(out, "No rule drops the packet, and the server responds.")
	case errors.Is(response, syscall.ECONNREFUSED):
		fmt.Fprintln(out, "No rule drops the packet, and the server rejects it: nothing listens on the port.")
	default:
		fmt.Fprintln(out, "No rule of this host drops the packet. If it is lost, trace it on the host of the other pod.")
	}
	return nil
}

// policies returns a sentence that lists the policies that contributed to the last step's verdict,
// or "". The names of the policies are in the comments on the chains that the packet traversed in
// the last step's table.
func policies(steps []trace.Step) string {
	var names []string
	for _, step := range steps {
		if step.Table == steps[len(steps)-1].Table && step.Comment != "" && !slices.Contains(names, step.Comment) {
			names = append(names, step.Comment)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Policies that apply and do not allow it: " + strings.Join(names, ", ") + "."
}
