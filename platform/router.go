package platform

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/apigroup/route/ingress"
	"github.com/slipway-platform/slipway/router"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/router/settings"
)

// edge is the part that serves routes on the node's own ports. The node does without it when it fails, and it is tried again.
type edge struct {
	router   *router.Router
	problem  error // that of its settings
	disabled bool
	note     func(string)
}

func (h *host) router() (Component, error) {
	config, err := kubeconfig(h.identity.RouterKubeconfig)
	if err != nil {
		return nil, err
	}
	given := h.Node.Slipway.Router
	read, problem := settings.Read(given.Environment)
	return &edge{
		problem: problem, disabled: given.Disabled, note: func(string) {},
		router: &router.Router{
			Config: config, Settings: read, Dir: h.routerDir(), User: accountOf("haproxy"), Outlive: true,
			Domain: h.Master.RoutingConfig.Subdomain, ServiceCA: h.identity.ServiceCA, Grace: 2 * time.Second,
		},
	}, nil
}

// routerDir is the working directory of the node's router.
func (h *host) routerDir() string { return filepath.Join(h.runDir(), "router") }

// ingress makes routes of Ingress objects.
func (h *host) ingress() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &ingress.Controller{Client: client, Address: h.address.String(), Domain: h.Master.RoutingConfig.Subdomain}, nil
}

// accountOf is the name of an account, if root may change to it.
func accountOf(name string) string {
	if _, err := user.Lookup(name); err != nil || os.Geteuid() != 0 {
		return ""
	}
	return name
}

// findHAProxy finds the program where distributions install it.
func findHAProxy() (string, error) {
	if program, found := findProgram("haproxy"); found {
		return program, nil
	}
	return "", fmt.Errorf("routes are not served, since this machine has no HAProxy; run: apt-get install haproxy")
}

// findProgram finds a program where distributions install it.
func findProgram(name string) (path string, found bool) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin") {
		if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return program, true
		}
	}
	return "", false
}

// Name is the part's name.
func (*edge) Name() string { return "router" }

// Notes gets the function that tells what the part does without.
func (e *edge) Notes(note func(string)) {
	last := ""
	var mu sync.Mutex
	e.note = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last {
			note(text)
		}
		last = text
	}
}

// retryRouter is how long to wait after the router has failed, for instance because a port is taken.
const retryRouter = 10 * time.Second

// Run serves routes, and tries again when it cannot.
func (e *edge) Run(ctx context.Context, ready func()) error {
	if e.disabled {
		if err := haproxy.EndLeft(e.router.Dir); err != nil { // of a node that was killed when it was not disabled
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}
	ready = sync.OnceFunc(ready)
	for ctx.Err() == nil {
		err := e.serve(ctx, func() { ready(); e.note("") })
		if ctx.Err() != nil {
			return nil
		}
		slog.Error("routes are not served", "error", err, "again in", retryRouter)
		ready()
		e.note(err.Error())
		select {
		case <-time.After(retryRouter):
		case <-ctx.Done():
		}
	}
	return nil
}

func (e *edge) serve(ctx context.Context, ready func()) (err error) {
	if e.problem != nil {
		return fmt.Errorf("read slipway.router.environment of the NodeConfig: %w", e.problem)
	}
	if e.router.Program, err = findHAProxy(); err != nil {
		return err
	}
	e.router.Trouble = e.note
	return e.router.Run(ctx, ready)
}

func routerCommand() *cobra.Command {
	var file, dir, serviceCA string
	command := &cobra.Command{
		Use:   "router",
		Short: "Serve routes with HAProxy: one more router, such as one for a shard",
		Long: "Serve the routes of a cluster with HAProxy. It is configured by the environment variables of OpenShift 3's router, such as\n" +
			"ROUTE_LABELS, ROUTER_SERVICE_NAME and ROUTER_SERVICE_HTTP_PORT, and runs in a pod on the host network or with a kubeconfig.\n" +
			"Routers on one machine need different ports: ROUTER_SERVICE_HTTP_PORT, ROUTER_SERVICE_HTTPS_PORT and ROUTER_LISTEN_ADDR.\n" +
			"Custom templates also use ROUTER_SERVICE_SNI_PORT and ROUTER_SERVICE_NO_SNI_PORT.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := (&csiFlags{kubeconfig: file}).config()
			if err != nil {
				return err
			}
			environment := map[string]string{}
			for _, variable := range os.Environ() {
				name, value, _ := strings.Cut(variable, "=")
				environment[name] = value
			}
			read, err := settings.Read(environment)
			if err != nil {
				return err
			}
			program, err := findHAProxy()
			if err != nil {
				return err
			}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			part := &router.Router{
				Config: config, Settings: read, Program: program, Dir: absolute, User: accountOf("haproxy"), ServiceCA: serviceCA, Grace: 30 * time.Second,
			}
			return runForeground(cmd.Context(), []Part{{Component: part}})
		},
	}
	command.AddCommand(routerLogCommand())
	set := command.Flags()
	set.StringVar(&file, "kubeconfig", "", "kubeconfig of the cluster; the pod's service account by default")
	set.StringVar(&dir, "working-dir", "/var/lib/haproxy", "directory for HAProxy's configuration and sockets")
	set.StringVar(&serviceCA, "service-ca", "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt", "file of the authority of services' certificates, if it is there")
	return command
}

// routerLogCommand is what the container syslog of a router's pods runs.
func routerLogCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "syslog SOCKET",
		Short:  "Print what HAProxy sends to a log socket",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return router.RelayLog(ctx, args[0], cmd.OutOrStdout())
		},
	}
}
