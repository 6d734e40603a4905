package command

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/throughput"
)

func networkThroughputCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "throughput",
		Short: "Measure throughput and latency between hosts and pods",
		Long: "Measure throughput and latency between hosts and pods. Start the server at one end, and measure from the other. Measure between\n" +
			"pods first, then between their hosts: if the hosts are as slow as the pods, the cause is below the pod network.",
		Example: "  slipway network throughput serve --pod shop/web                 # on the host of web\n" +
			"  slipway network throughput measure 10.129.0.3 --pod shop/client   # on the host of client",
	}
	command.AddCommand(throughputServeCommand(opts), throughputMeasureCommand(opts))
	return command
}

func throughputServeCommand(opts *options) *cobra.Command {
	var place networkPlace
	port := uint16(throughput.Port)
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve measurements until Ctrl-C",
		Long:  "Serve measurements until Ctrl-C, one after the other. Any client that can reach the port can start a measurement.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			if err := place.open(ctx, opts); err != nil {
				return err
			}
			defer place.close()
			listener, packets, err := place.listen(net.JoinHostPort("", strconv.Itoa(int(port))))
			if err != nil {
				return fmt.Errorf("%w; select another port with --port", err)
			}
			defer packets.Close()
			fmt.Fprintf(cmd.ErrOrStderr(), "Serving measurements on TCP and UDP port %d. Ctrl-C ends the command.\n", port)
			return throughput.Serve(ctx, listener, packets)
		},
	}
	place.addFlag(command)
	command.Flags().Uint16Var(&port, "port", port, "TCP and UDP port")
	return command
}

// measurement contains the flags of `slipway network throughput measure`.
type measurement struct {
	place    networkPlace
	port     uint16
	duration time.Duration
	udp      bool
	megabits float64
}

func throughputMeasureCommand(opts *options) *cobra.Command {
	m := &measurement{port: throughput.Port}
	command := &cobra.Command{
		Use:   "measure ADDRESS",
		Short: "Measure the throughput to a server, and the latency",
		Long: "Measure the throughput to a server, and the latency: the round-trip time of one byte. With --udp, measure how many\n" +
			"datagrams arrive.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd, opts, args[0]) },
	}
	m.place.addFlag(command)
	flags := command.Flags()
	flags.Uint16Var(&m.port, "port", m.port, "port of the server")
	flags.DurationVar(&m.duration, "duration", 5*time.Second, "duration of the measurement")
	flags.BoolVar(&m.udp, "udp", false, "send UDP datagrams instead of a TCP stream")
	flags.Float64Var(&m.megabits, "rate", 100, "rate of the datagrams, in Mbit/s")
	return command
}

func (m *measurement) run(cmd *cobra.Command, opts *options, host string) error {
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("address %q: must be an IP address; `oc get pods -o wide` prints the addresses of pods", host)
	}
	if m.duration <= 0 || m.megabits <= 0 {
		return errors.New("--duration and --rate must be positive")
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if err := m.place.open(ctx, opts); err != nil {
		return err
	}
	defer m.place.close()
	address := net.JoinHostPort(host, strconv.Itoa(int(m.port)))
	dial := m.place.dial(ctx, address)
	hint := func(err error) error {
		return fmt.Errorf("%w; run `slipway network throughput serve` there, and allow connections to port %d", err, m.port)
	}
	if m.udp {
		r, err := throughput.MeasureDatagrams(ctx, dial, m.duration, m.megabits*1e6)
		if err != nil {
			return hint(err)
		}
		sent, received := r.Rates()
		fmt.Fprintf(cmd.OutOrStdout(), "UDP to %s: sent %s, received %s, lost %d of %d datagrams\n",
			address, formatRate(sent), formatRate(received), r.Sent-r.Received, r.Sent)
		return nil
	}
	r, err := throughput.Measure(ctx, dial, m.duration)
	if err != nil {
		return hint(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "TCP to %s: %s in %s\nRound-trip latency: median %s, 99th percentile %s\n", address,
		formatRate(r.Rate()), r.Duration.Round(time.Millisecond), r.Median.Round(time.Microsecond), r.P99.Round(time.Microsecond))
	return nil
}

// formatRate formats a number of bits per second with a suitable unit.
func formatRate(bits float64) string {
	switch {
	case bits >= 1e9:
		return fmt.Sprintf("%.2f Gbit/s", bits/1e9)
	case bits >= 1e6:
		return fmt.Sprintf("%.2f Mbit/s", bits/1e6)
	}
	return fmt.Sprintf("%.2f kbit/s", bits/1e3)
}
