package platform

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/liveness"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/storage/csi/register"
)

func csiCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "csi",
		Short: "Serve CSI drivers: what the separate helper containers of a driver do, in one process",
		Long: "Serve CSI drivers in place of external-provisioner, external-attacher, external-resizer, external-snapshotter,\n" +
			"node-driver-registrar and livenessprobe: one process for any number of drivers. It asks each driver over its socket\n" +
			"what it can do and does what that allows, waits for drivers that are not there, and needs no configuration.\n" +
			"It runs on any Kubernetes cluster, in a pod or with a kubeconfig.",
		GroupID: "host",
	}
	command.AddCommand(csiControllerCommand(), csiNodeCommand(), csiManifestCommand())
	return command
}

// csiFlags are the flags that both sides of a driver have.
type csiFlags struct {
	addresses  []string
	timeout    time.Duration
	httpServer string
	kubeconfig string
}

func (f *csiFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.addresses, "csi-address", nil, "socket of a driver, such as unix:///csi/csi.sock; may be given several times")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "deadline of each call of a driver")
	flags.StringVar(&f.httpServer, "http-endpoint", "", "address for /metrics and /healthz, such as :9808; none by default")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; the pod's service account by default")
}

// config connects to the cluster.
func (f *csiFlags) config() (*rest.Config, error) {
	if f.kubeconfig != "" {
		return kubeconfig(f.kubeconfig)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w; outside of a pod, use --kubeconfig", err)
	}
	return config, nil
}

func csiNodeCommand() *cobra.Command {
	var (
		flags        csiFlags
		endpoint     string
		registration string
	)
	command := &cobra.Command{
		Use:   "node --csi-address SOCKET --kubelet-registration-path PATH",
		Short: "Register a driver with the kubelet of this node and tell its health",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(flags.addresses) != 1 {
				return fmt.Errorf("register CSI driver: give --csi-address once, not %d times", len(flags.addresses))
			}
			if endpoint == "" {
				endpoint = filepath.Clean("/" + trimScheme(flags.addresses[0]))
			}
			observed := metrics.New()
			connection, err := driver.Dial(flags.addresses[0], driver.Options{Timeout: flags.timeout, Observe: observed.Observe})
			if err != nil {
				return err
			}
			defer connection.Close()
			parts, closeAll, err := flags.parts(observed)
			if err != nil {
				return err
			}
			defer closeAll()
			registrar := &register.Registrar{Driver: connection, Endpoint: endpoint, Dir: registration}
			return runForeground(cmd.Context(), append(parts, Part{Component: registrar}))
		},
	}
	set := command.Flags()
	flags.add(set)
	set.StringVar(&endpoint, "kubelet-registration-path", "", "the driver's socket as kubelet sees it; the address by default")
	set.StringVar(&registration, "registration-dir", "/var/lib/kubelet/plugins_registry", "kubelet's directory plugins_registry as this process sees it")
	return command
}

// parts are the HTTP server, if there is to be one.
func (f *csiFlags) parts(observed *metrics.Metrics) (parts []Part, closeAll func(), err error) {
	if f.httpServer == "" {
		return nil, func() {}, nil
	}
	probed := map[string]liveness.Driver{}
	var connections []*driver.Driver
	closeAll = func() {
		for _, c := range connections {
			_ = c.Close()
		}
	}
	for _, address := range f.addresses {
		connection, err := driver.Dial(address, driver.Options{Timeout: f.timeout})
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		connections = append(connections, connection)
		probed[connection.Address] = connection
	}
	listener, err := net.Listen("tcp", f.httpServer)
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("listen for metrics and health: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(observed)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle(liveness.Path, (&liveness.Server{Drivers: probed}).Handler())
	return []Part{{Component: &httpPart{listener, mux}}}, closeAll, nil
}

// httpPart serves metrics and health.
type httpPart struct {
	listener net.Listener
	handler  http.Handler
}

func (*httpPart) Name() string { return "http" }

func (h *httpPart) Run(ctx context.Context, ready func()) error {
	server := &http.Server{Handler: h.handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready()
	if err := server.Serve(h.listener); err != http.ErrServerClosed {
		return fmt.Errorf("serve metrics and health: %w", err)
	}
	return nil
}

// runForeground runs parts in this process until it is told to stop.
func runForeground(ctx context.Context, parts []Part) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return runParts(ctx, parts, func(Event) {}, releaseMemory)
}
