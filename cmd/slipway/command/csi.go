package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/liveness"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func csiCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "csi",
		Short: "Serve CSI drivers: replace the sidecar containers of a driver with one process",
		Long: "Serve CSI drivers instead of external-provisioner, external-attacher, external-resizer, external-snapshotter,\n" +
			"node-driver-registrar and livenessprobe: one process for any number of drivers. It gets each driver's capabilities through\n" +
			"its socket, waits for drivers that do not run yet, and needs no configuration.\n" +
			"It runs on any Kubernetes cluster, in a pod or with a kubeconfig.",
		GroupID: "host",
	}
	command.AddCommand(csiControllerCommand(), csiNodeCommand(opts), csiManifestCommand(opts))
	return command
}

// csiFlags are the flags that `slipway csi controller` and `slipway csi node` share.
type csiFlags struct {
	addresses  []string
	timeout    time.Duration
	httpServer string
	kubeconfig string
}

func (f *csiFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.addresses, "csi-address", nil, "socket of a driver, such as unix:///csi/csi.sock; can be repeated")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "deadline for each driver call")
	flags.StringVar(&f.httpServer, "http-endpoint", "", "address for /metrics and /healthz, such as :9808; if empty, they are not served")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; the default is the pod's service account")
}

// httpComponents returns the component that serves metrics and health, or no component if
// --http-endpoint is not set. It also returns a function that closes the component's connections to
// the drivers.
func (f *csiFlags) httpComponents(collector *metrics.Metrics) (components []component.Component, closeAll func(), err error) {
	if f.httpServer == "" {
		return nil, func() {}, nil
	}
	drivers := map[string]liveness.Driver{}
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
		drivers[connection.Address] = connection
	}
	listener, err := net.Listen("tcp", f.httpServer)
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("listen for metrics and health: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle(liveness.Path, (&liveness.Server{Drivers: drivers}).Handler())
	return []component.Component{&httpServer{listener, mux}}, closeAll, nil
}

// httpServer is the component that serves the metrics and health endpoints.
type httpServer struct {
	listener net.Listener
	handler  http.Handler
}

// Name returns the component's name.
func (*httpServer) Name() string { return "http" }

// Run serves until ctx is done.
func (h *httpServer) Run(ctx context.Context, ready func()) error {
	server := &http.Server{Handler: h.handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready()
	if err := server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics and health: %w", err)
	}
	return nil
}
