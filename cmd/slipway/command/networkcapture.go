package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/capture"
)

// podDevice is the name of a pod's network device.
const podDevice = "eth0"

// packetCapture contains the flags of `slipway network capture`.
type packetCapture struct {
	pods, podFlags, devices []string
	file                    string
	hosts                   []string
	port                    uint16
	limit                   int
	duration                time.Duration
}

func networkCaptureCommand(opts *options) *cobra.Command {
	c := &packetCapture{}
	command := &cobra.Command{
		Use:   "capture [NAMESPACE/POD...] [--device DEVICE...] --write FILE",
		Short: "Write the packets of pods or devices to a file",
		Long: "Write the packets of pods or network devices of this host to a file in the format pcapng, which tcpdump and Wireshark read.\n" +
			"The file contains the device of each packet. The capture ends with Ctrl-C, or after --count packets or --duration.\n\n" +
			"A capture contains what users and programs send, passwords included. Only root can read the file.",
		Example: "  slipway network capture shop/web --host 10.128.0.7 --host 10.129.0.3 --write web.pcap\n" +
			"  slipway network capture shop/web shop/database --device vxlan_sys_4789 --write path.pcap\n" +
			"  slipway network capture --device eth0 --port 4789 --duration 30s --write vxlan.pcap",
		RunE: func(cmd *cobra.Command, args []string) error {
			c.pods = args
			return c.run(cmd, opts)
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&c.podFlags, "pod", nil, "pod on this host, NAMESPACE/NAME; --device then names devices of the pod instead of the host")
	flags.StringArrayVar(&c.devices, "device", nil, "network device of this host; can be repeated")
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
	if len(c.pods)+len(c.podFlags)+len(c.devices) == 0 {
		errs = append(errs, errors.New("specify a pod as NAMESPACE/POD, or a device of the host with --device; to list the devices, run: ip link"))
	}
	if len(c.pods) > 0 && len(c.podFlags) > 0 {
		errs = append(errs, errors.New("specify pods either as arguments or with --pod, not both"))
	}
	if c.file == "" {
		errs = append(errs, errors.New("specify a file for the packets with --write"))
	}
	if c.limit < 0 || c.duration < 0 {
		errs = append(errs, errors.New("--count and --duration must not be negative"))
	}
	for _, host := range c.hosts {
		address, err := netip.ParseAddr(host)
		if err != nil {
			errs = append(errs, fmt.Errorf("--host %q: must be an IP address; `oc get pods -o wide` prints the addresses of pods", host))
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
	devices, release, err := c.open(ctx, opts)
	defer release()
	if err != nil {
		return err
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
	count, err = capture.Run(ctx, devices, out, filter, c.limit, func() {
		var titles []string
		for _, device := range devices {
			titles = append(titles, device.Title)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Capturing packets of %s. Ctrl-C ends the capture.\n", strings.Join(titles, ", "))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Captured %d packets.\n", count)
	return nil
}

// open finds the devices to capture on. The caller must call release after use.
func (c *packetCapture) open(ctx context.Context, opts *options) (devices []capture.Device, release func(), err error) {
	ofPods, ofHost := []string{podDevice}, c.devices
	if len(c.podFlags) > 0 {
		ofHost = nil
		if len(c.devices) > 0 {
			ofPods = c.devices
		}
	}
	var places []*networkPlace
	release = func() {
		for _, place := range places {
			place.close()
		}
	}
	for _, pod := range slices.Concat(c.pods, c.podFlags) {
		place := &networkPlace{pod: pod}
		if err := place.open(ctx, opts); err != nil {
			return nil, release, err
		}
		places = append(places, place)
		for _, name := range ofPods {
			devices = append(devices, capture.Device{Name: name, Title: pod + ":" + name, Do: place.do})
		}
	}
	for _, name := range ofHost {
		devices = append(devices, capture.Device{Name: name, Title: name})
	}
	return devices, release, nil
}
