package adm

import (
	"context"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/adm/failoverpod"
)

// admFailover holds the state of `oc adm ipfailover`.
type admFailover struct {
	installation
	request failoverpod.Request
}

// newAdmFailover returns the `oc adm ipfailover` command.
func newAdmFailover(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	f := &admFailover{installation: newInstallation(factory, streams)}
	command := &cobra.Command{
		Use:   "ipfailover [NAME]",
		Short: "Share virtual addresses between hosts",
		Long: `Share virtual addresses between hosts. Each address is on one host. If that host or its service fails, the address moves to another host.

Pods with keepalived run on the hosts that --selector selects, one on each host. The package keepalived must be installed on these hosts. If there
are fewer addresses than hosts, the other hosts are standby. The service account can run privileged pods, which change the host's network.

If a deployment configuration with this name exists, the command changes nothing.`,
		Example: `  # Two addresses for the routers of the nodes with the label router=edge
  oc adm ipfailover ha-router --selector=router=edge --replicas=2 --virtual-ips=192.0.2.10-11 --watch-port=80

  # Print the objects without creating them
  oc adm ipfailover --virtual-ips=192.0.2.10 --dry-run -o yaml`,
		Args: cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(f.complete(args))
			util.CheckErr(f.run(command.Context()))
		},
	}
	f.print.AddFlags(command)
	flags := command.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "Print the objects without creating them.")
	flags.Bool("create", true, "Ignored. Accepted for compatibility with OpenShift 3: the command always creates a missing configuration.")
	_ = flags.MarkHidden("create") // cannot fail: the flag exists
	f.request.AddFlags(flags)
	return command
}

// complete sets the objects' name and namespace.
func (f *admFailover) complete(args []string) (err error) {
	f.request.Name = "ipfailover"
	if len(args) > 0 {
		f.request.Name = args[0]
	}
	f.request.Namespace, _, err = f.factory.ToRawKubeConfigLoader().Namespace()
	return err
}

func (f *admFailover) run(ctx context.Context) error {
	desired, err := f.request.Objects()
	if err != nil {
		return err
	}
	if !f.dryRun {
		exists, err := f.exists(ctx)
		if err != nil {
			return err
		}
		if exists {
			fmt.Fprintf(f.Out, "Deployment configuration %q exists\n", f.request.Name)
			return nil
		}
	}
	if f.dryRun && *f.print.OutputFormat == "" {
		if err := f.hostAccess(ctx, f.request.Namespace, desired); err != nil {
			return fmt.Errorf("ipfailover could not be created; %w", err)
		}
	}
	return f.create(ctx, "IP failover "+f.request.Name, f.request.Namespace, desired)
}

// exists reports whether a deployment config with the requested name exists.
func (f *admFailover) exists(ctx context.Context) (bool, error) {
	client, err := f.factory.DynamicClient()
	if err != nil {
		return false, err
	}
	_, err = client.Resource(appsv1.GroupVersion.WithResource("deploymentconfigs")).Namespace(f.request.Namespace).Get(ctx, f.request.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find deployment configuration %q: %w", f.request.Name, err)
	}
	return true, nil
}
