package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/cmd/slipway/installation"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/platform/loadbalancer"
	"github.com/slipway-platform/slipway/router/haproxy"
)

// balancerDir returns a load balancer's directory.
func balancerDir(opts *options) (string, error) {
	dir, err := filepath.Abs(filepath.Join(opts.dataDir, "lb"))
	if err != nil {
		return "", fmt.Errorf("find data directory: %w", err)
	}
	return dir, nil
}

func lbRunCommand(opts *options) *cobra.Command {
	flags := balancerFlags{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run a load balancer that follows the masters of the cluster",
		Long: "Run a HAProxy that balances connections across the masters' API servers. It follows the masters of the cluster, and keeps the\n" +
			"connections to the others when one of them joins or leaves. Its kubeconfig is lb/kubeconfig in the data directory; create it on a\n" +
			"master with `slipway lb kubeconfig`. `slipway lb install` installs this command as a service.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := balancerDir(opts)
			if err != nil {
				return err
			}
			program, err := haproxy.FindProgram()
			if err != nil {
				return err
			}
			return runForeground(cmd.Context(), &loadbalancer.LoadBalancer{
				Dir: dir, Program: program, User: haproxy.Account(), Listen: flags.listen, Stats: flags.stats,
			})
		},
	}
	flags.addAddresses(command.Flags())
	return command
}

func lbKubeconfigCommand(opts *options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Create the kubeconfig of a load balancer, on a master",
		Long: "Create the kubeconfig of a load balancer, on a master. It only permits reading the addresses of the API servers. Copy it to\n" +
			"lb/kubeconfig in the data directory of the load balancer. To revoke all kubeconfigs of load balancers, run:\n" +
			"  oc delete secret load-balancer -n openshift-infra",
		Example: "  slipway lb kubeconfig --output kubeconfig",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := balancerKubeconfig(cmd.Context(), opts)
			if err != nil {
				return err
			}
			if output == "" {
				_, err := cmd.OutOrStdout().Write(content)
				return err
			}
			return atomicfile.Write(output, content, 0o600)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "file to write, with mode 0600")
	return command
}

// kubeconfigTimeout is the timeout for creating a kubeconfig.
const kubeconfigTimeout = time.Minute

func balancerKubeconfig(ctx context.Context, opts *options) ([]byte, error) {
	servers, err := clusterMasters(ctx, opts)
	if err != nil {
		return nil, err
	}
	h, err := opts.loadMaster()
	if err != nil {
		return nil, err
	}
	config, client, err := connectAdmin(h)
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, kubeconfigTimeout)
	defer cancel()
	return loadbalancer.Kubeconfig(ctx, client, config.CAData, servers)
}

func lbInstallCommand(opts *options) *cobra.Command {
	flags := balancerFlags{}
	command := &cobra.Command{
		Use:   "install",
		Short: "Install the load balancer as a systemd service",
		Long: "Copy this program to /usr/local/bin, and install a systemd service that runs `slipway lb run` when the machine boots. Start it with:\n" +
			"  systemctl start " + installation.LoadBalancer,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			request, err := installationRequest(opts, cmd.Root())
			if err != nil {
				return err
			}
			request.LoadBalancer = []string{"--listen=" + flags.listen, "--stats=" + flags.stats}
			files, err := installation.Host().Install(cmd.Context(), request)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Installed %d files and the systemd service %[2]s. Start it with: systemctl start %[2]s\n",
				len(files), installation.LoadBalancer)
			return err
		},
	}
	flags.addAddresses(command.Flags())
	return command
}

func lbUninstallCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the load balancer, and remove its service and its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			dir, err := balancerDir(opts)
			if err != nil {
				return err
			}
			if _, err := installation.Host().Remove(cmd.Context(), opts.dataDir); err != nil {
				return err
			}
			if err := haproxy.EndOrphans(dir); err != nil {
				return err
			}
			if err := os.RemoveAll(dir); err != nil {
				return fmt.Errorf("remove load balancer files: %w", err)
			}
			return nil
		},
	}
}
