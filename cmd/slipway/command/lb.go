package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/router/haproxy"
	routermasters "github.com/slipway-platform/slipway/router/masters"
)

// balancerFlags contains the flags of `slipway lb config`.
type balancerFlags struct {
	masters       []string
	listen, stats string
	output        string
}

func lbCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "lb", Short: "Run or configure a load balancer in front of the API of several masters", GroupID: "host"}
	command.AddCommand(lbRunCommand(opts), lbInstallCommand(opts), lbUninstallCommand(opts), lbKubeconfigCommand(opts), lbConfigCommand(opts))
	return command
}

func lbConfigCommand(opts *options) *cobra.Command {
	flags := balancerFlags{}
	command := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration of a separate HAProxy that balances connections across the masters",
		Long: "Print a configuration for HAProxy, which balances connections across the masters' API servers. The file does not change when\n" +
			"masters join or leave; `slipway lb run` follows these changes. On a master, the command finds all masters of the cluster.\n" +
			"Elsewhere, name them with --master. With --output, HAProxy checks the configuration before the command replaces the file, and\n" +
			"the command prints whether the file has changed.",
		Example: "  slipway lb config >haproxy.cfg\n" +
			"  slipway lb config --master master-1=192.0.2.11 --master master-2=192.0.2.12 --output /etc/haproxy/haproxy.cfg",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return writeBalancer(cmd, opts, flags) },
	}
	set := command.Flags()
	set.StringArrayVar(&flags.masters, "master", nil, "a master, as NAME=HOST[:PORT] or HOST[:PORT]; can be repeated")
	flags.addAddresses(set)
	set.StringVarP(&flags.output, "output", "o", "", "file to write, such as /etc/haproxy/haproxy.cfg")
	return command
}

// addAddresses adds the flags for HAProxy's addresses.
func (f *balancerFlags) addAddresses(set *pflag.FlagSet) {
	set.StringVar(&f.listen, "listen", routermasters.DefaultListen, "address for clients")
	set.StringVar(&f.stats, "stats", routermasters.DefaultStats, "address of HAProxy's statistics, and of /status")
}

func writeBalancer(cmd *cobra.Command, opts *options, flags balancerFlags) error {
	balancer := routermasters.Config{Listen: flags.listen, Stats: flags.stats}
	if flags.output != "" {
		balancer.User = haproxy.Account()
	}
	var errs []error
	for _, text := range flags.masters {
		server, err := routermasters.ParseServer(text)
		errs = append(errs, err)
		balancer.Servers = append(balancer.Servers, server)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(flags.masters) == 0 {
		var err error
		if balancer.Servers, err = clusterMasters(cmd.Context(), opts); err != nil {
			return fmt.Errorf("find the masters: %w; to specify them, use --master", err)
		}
	}
	text, err := balancer.Text()
	if err != nil {
		return err
	}
	if flags.output == "" {
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	if existing, err := os.ReadFile(flags.output); err == nil && bytes.Equal(existing, text) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is unchanged\n", flags.output)
		return err
	}
	if err := checkBalancer(cmd.Context(), text); err != nil {
		return err
	}
	if err := atomicfile.Write(flags.output, text, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has changed; apply it with: systemctl reload haproxy\n", flags.output)
	return err
}

// checkBalancer checks a configuration with HAProxy, and returns HAProxy's error if it rejects the
// configuration.
func checkBalancer(ctx context.Context, text []byte) error {
	program, err := haproxy.FindProgram()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, "-c", "-f", "/dev/stdin")
	command.Stdin = bytes.NewReader(text)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("check HAProxy configuration: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// clusterMasters returns the masters whose API servers are registered, sorted by name.
func clusterMasters(ctx context.Context, opts *options) ([]routermasters.Server, error) {
	h, err := opts.loadMaster()
	if err != nil {
		return nil, err
	}
	_, client, err := connectAdmin(h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	addresses, err := masters.APIServers(ctx, client, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var servers []routermasters.Server
	for _, address := range addresses {
		server, err := routermasters.ParseServer(address)
		if err != nil {
			return nil, err
		}
		server.Name = cmp.Or(nodeWith(nodes.Items, address), server.Name)
		servers = append(servers, server)
	}
	slices.SortFunc(servers, func(a, b routermasters.Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers, nil
}

// nodeWith returns the name of the node whose internal IP address is the host in address, a
// host:port. It returns "" if there is no such node.
func nodeWith(nodes []corev1.Node, address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	for i := range nodes {
		for _, a := range nodes[i].Status.Addresses {
			if a.Type == corev1.NodeInternalIP && a.Address == host {
				return nodes[i].Name
			}
		}
	}
	return ""
}
