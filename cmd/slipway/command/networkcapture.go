package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/capture"
)

// podDevice is the name of a pod's network device.
const podDevice = "eth0"

// packetCapture contains the flags of `slipway network capture`.
type packetCapture struct {
	place        networkPlace
	device, file string
	hosts        []string
	port         uint16
	limit        int
	duration     time.Duration
}

func networkCaptureCommand(opts *options) *cobra.Command {
	c := &packetCapture{}
	command := &cobra.Command{
		Use:   "capture {--pod NAMESPACE/NAME | --device DEVICE} --write FILE",
		Short: "Write the packets of a pod or of a device to a file",
		Long: "Write the packets of a pod or of a network device of this host to a file in the format of pcap, which tcpdump and Wireshark read.\n" +
			"The capture ends with Ctrl-C, or after --count packets or --duration.\n\n" +
			"A capture contains what users and programs send, passwords included. Only root can read the file.",
		Example: "  slipway network capture --pod shop/web --host 10.128.0.7 --host 10.129.0.3 --write web.pcap\n" +
			"  slipway network capture --device eth0 --port 4789 --duration 30s --write vxlan.pcap",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, opts) },
	}
	c.place.addFlag(command)
	flags := command.Flags()
	flags.StringVar(&c.device, "device", "", "network device; of a pod, the default is "+podDevice)
	flags.StringVarP(&c.file, "write", "w", "", "file for the packets; - is standard output")
	flags.StringArrayVar(&c.hosts, "host", nil, "only packets from or to this IP address; with two addresses, only packets between them")
	flags.Uint16Var(&c.port, "port", 0, "only packets from or to this port of TCP, UDP or SCTP")
	flags.IntVar(&c.limit, "count", 0, "end after this number of packets")
	flags.DurationVar(&c.duration, "duration", 0, "end after this time, such as 30s")
	return command
}

// validate validates the flags and returns the filter.
func (c *packetCapture) validate() (filter capture.Filter, err error) {
	var errs []error
	if c.device == "" && c.place.pod == "" {
		errs = append(errs, errors.New("name a pod with --pod, or a device of the host with --device; ip link prints the devices"))
	}
	if c.file == "" {
		errs = append(errs, errors.New("name a file for the packets with --write"))
	}
	if c.limit < 0 || c.duration < 0 {
		errs = append(errs, errors.New("--count and --duration must not be negative"))
	}
	for _, host := range c.hosts {
		address, err := netip.ParseAddr(host)
		if err != nil {
			errs = append(errs, fmt.Errorf("--host %q: must be an IP address; oc get pods -o wide prints those of pods", host))
		}
		filter.Hosts = append(filter.Hosts, address)
	}
	filter.Port = c.port
	return filter, errors.Join(errs...)
}

func (c *packetCapture) run(cmd *cobra.Command, opts *options) error {
	filter, err := c.validate()
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if c.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.duration)
		defer cancel()
	}
	if err := c.place.open(ctx, opts); err != nil {
		return err
	}
	defer c.place.close()
	device, where := c.device, "of this host"
	if c.place.pod != "" {
		where = "of pod " + c.place.pod
		if device == "" {
			device = podDevice
		}
	}
	out, count := cmd.OutOrStdout(), 0
	if c.file != "-" {
		file, err := os.OpenFile(c.file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("create file for packets: %w", err)
		}
		defer file.Close()
		out = io.Writer(file)
	}
	err = c.place.do(func() (err error) {
		count, err = capture.Run(ctx, device, out, filter, c.limit, func() {
			fmt.Fprintf(cmd.ErrOrStderr(), "Capturing packets of device %s %s. Ctrl-C ends the capture.\n", device, where)
		})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Captured %d packets.\n", count)
	return nil
}
