package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

// networkTimeout is the timeout for finding a pod, and for opening a connection.
const networkTimeout = 10 * time.Second

func networkCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "network",
		Short: "Capture and trace packets, and measure throughput, on this host or in a pod",
		Long: "Capture and trace packets, and measure throughput, on this host or in the network of a pod that runs on this host. The pods need no\n" +
			"tools and no permissions.",
		GroupID: "look",
	}
	command.AddCommand(networkCaptureCommand(opts), networkThroughputCommand(opts), networkTraceCommand(opts))
	return command
}

// networkPlace is the place where a `slipway network` command operates: the host, or a pod's
// network namespace.
type networkPlace struct {
	pod string // NAMESPACE/NAME, or empty for the host

	namespace *netnamespace.Namespace // nil for the host
}

func (p *networkPlace) addFlag(command *cobra.Command) {
	command.Flags().StringVar(&p.pod, "pod", "", "use the network of this pod on this host, NAMESPACE/NAME, instead of the host's network")
}

// open finds the pod's network namespace. The caller must then call close.
func (p *networkPlace) open(ctx context.Context, opts *options) error {
	if p.pod == "" {
		return nil
	}
	namespace, name, ok := strings.Cut(p.pod, "/")
	if !ok || namespace == "" || name == "" {
		return fmt.Errorf("pod %q: must be NAMESPACE/NAME", p.pod)
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, networkTimeout)
	defer cancel()
	p.namespace, err = h.PodNetwork(ctx, namespace, name)
	return err
}

func (p *networkPlace) close() {
	if p.namespace != nil {
		_ = p.namespace.Close()
	}
}

// do calls a function on a thread in the pod's network namespace, or directly if the place is the
// host.
func (p *networkPlace) do(f func() error) error {
	if p.namespace == nil {
		return f()
	}
	return p.namespace.Do(f)
}

// dial returns a function that connects from this place to address. The host in address must be an
// IP address.
func (p *networkPlace) dial(ctx context.Context, address string) func(network string) (net.Conn, error) {
	return func(network string) (conn net.Conn, err error) {
		ctx, cancel := context.WithTimeout(ctx, networkTimeout)
		defer cancel()
		err = p.do(func() error {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// listen returns TCP and UDP listeners on the same port.
func (p *networkPlace) listen(address string) (listener net.Listener, packets net.PacketConn, err error) {
	err = p.do(func() error {
		if listener, err = net.Listen("tcp", address); err != nil {
			return err
		}
		if packets, err = net.ListenPacket("udp", listener.Addr().String()); err != nil {
			return errors.Join(err, listener.Close())
		}
		return nil
	})
	return listener, packets, err
}

// untilInterrupt returns a context that is canceled on SIGINT (Ctrl-C) or SIGTERM.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
