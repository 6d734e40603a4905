package command

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/router"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/haproxy"
)

// haproxyRouter and f5Router are the router kinds.
const haproxyRouter, f5Router = "haproxy-router", "f5-router"

func routerCommand() *cobra.Command {
	var file, dir, serviceCA, kind string
	command := &cobra.Command{
		Use:   "router",
		Short: "Serve routes with HAProxy or an F5 BIG-IP: an additional router, such as one for a shard",
		Long: "Serve the routes of a cluster with HAProxy. The command runs in a pod on the host network, or with a kubeconfig. The environment\n" +
			"variables of OpenShift 3's router configure it, such as ROUTE_LABELS, ROUTER_SERVICE_NAME and ROUTER_SERVICE_HTTP_PORT.\n" +
			"Routers on one machine need different ports: ROUTER_SERVICE_HTTP_PORT, ROUTER_SERVICE_HTTPS_PORT and ROUTER_LISTEN_ADDR.\n" +
			"Custom templates also use ROUTER_SERVICE_SNI_PORT and ROUTER_SERVICE_NO_SNI_PORT.\n\n" +
			"With --type=f5-router, configure the F5 BIG-IP appliance that the variables ROUTER_EXTERNAL_HOST_* describe. It serves the routes.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clusterConfig(file)
			if err != nil {
				return err
			}
			configured, err := environment.Read(variables())
			if err != nil {
				return err
			}
			switch kind {
			case f5Router:
				return runForeground(cmd.Context(), &router.F5{Config: config, Settings: configured, ServiceCA: serviceCA})
			case haproxyRouter:
			default:
				return fmt.Errorf("parse --type %q: must be %s or %s", kind, haproxyRouter, f5Router)
			}
			program, err := haproxy.FindProgram()
			if err != nil {
				return err
			}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			return runForeground(cmd.Context(), &router.Router{
				Config: config, Settings: configured, Program: program, Dir: absolute, User: haproxy.Account(),
				ServiceCA: serviceCA, ShutdownTimeout: 30 * time.Second,
			})
		},
	}
	command.AddCommand(routerLogCommand())
	flags := command.Flags()
	flags.StringVar(&file, "kubeconfig", "", "kubeconfig of the cluster; the default is the pod's service account")
	flags.StringVar(&kind, "type", haproxyRouter, "kind of router: "+haproxyRouter+" or "+f5Router)
	flags.StringVar(&dir, "working-dir", "/var/lib/haproxy", "directory for HAProxy's configuration and sockets")
	flags.StringVar(&serviceCA, "service-ca", "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt", "file with the certificate authority for service certificates, if it exists")
	return command
}

// variables returns this process's environment variables.
func variables() map[string]string {
	variables := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	return variables
}

// routerLogCommand returns the command that runs in the syslog container of router pods.
func routerLogCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "syslog SOCKET",
		Short:  "Print the messages that HAProxy sends to a log socket",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return router.RelayLog(ctx, args[0], cmd.OutOrStdout())
		},
	}
}
