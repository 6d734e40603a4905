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

// admFailover contains the state of `oc adm ipfailover`.
type admFailover struct {
	installation
	request failoverpod.Request
}

// newAdmFailover returns `oc adm ipfailover`.
func newAdmFailover(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	f := &admFailover{installation: newInstallation(factory, streams)}
	command := &cobra.Command{
		Use:   "ipfailover [NAME]",
		Short: "Share virtual addresses between hosts",
		Long: `Share virtual addresses between hosts: each address is on one of them, and moves to another when that one, or what it serves, fails.

Pods with keepalived run on the hosts that --selector chooses, one on each, and need the package keepalived there. With fewer addresses
than hosts the others stand by. Their service account may run privileged pods, which the pods need to change the host's network.

If a deployment configuration of the name is there already, nothing is changed.`,
		Example: `  # Two addresses for the routers of the nodes with the label router=edge
  oc adm ipfailover ha-router --selector=router=edge --replicas=2 --virtual-ips=192.0.2.10-11 --watch-port=80

  # Only show what would be made
  oc adm ipfailover --virtual-ips=192.0.2.10 --dry-run -o yaml`,
		Args: cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(f.run(command.Context(), args))
		},
	}
	f.print.AddFlags(command)
	flags := command.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "Only show what would be made.")
	flags.Bool("create", true, "Accepted for OpenShift 3: the configuration is made if it is not there.")
	_ = flags.MarkHidden("create") // the flag exists
	f.request.AddFlags(flags)
	return command
}

func (f *admFailover) run(ctx context.Context, args []string) error {
	f.request.Name = "ipfailover"
	if len(args) > 0 {
		f.request.Name = args[0]
	}
	namespace, _, err := f.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	f.request.Namespace = namespace
	made, err := f.request.Objects()
	if err != nil {
		return err
	}
	if !f.dryRun {
		there, err := f.exists(ctx)
		if err != nil {
			return err
		}
		if there {
			fmt.Fprintf(f.Out, "Deployment configuration %q exists\n", f.request.Name)
			return nil
		}
	}
	return f.make(ctx, "ipfailover "+f.request.Name, namespace, made)
}

// exists reports whether there is a deployment configuration of the name.
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
		return false, fmt.Errorf("look for deployment configuration %q: %w", f.request.Name, err)
	}
	return true, nil
}
