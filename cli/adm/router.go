package adm

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/adm/routerpod"
	"github.com/slipway-platform/slipway/cli/objects"
)

// admRouter holds the state of `oc adm router`.
type admRouter struct {
	installation
	request routerpod.Request
}

// newAdmRouter returns the `oc adm router` command.
func newAdmRouter(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &admRouter{installation: newInstallation(factory, streams)}
	command := &cobra.Command{
		Use:   "router [NAME]",
		Short: "Install a router",
		Long: `Install a router: pods that serve routes with HAProxy, in addition to the router on every node. With --type=f5-router,
the pods configure an F5 BIG-IP appliance instead, which serves the routes.

Its service account gets the permissions of a router, and can use the host's network if the pods do. Routers on the same host need
different ports: --ports and --stats-port. The node itself serves routes on ports 80, 443 and 1936, unless the NodeConfig
has slipway.router.disabled. Set everything else with environment variables: oc set env dc/NAME ROUTE_LABELS=...

If a service with this name exists, the command changes nothing. With --dry-run, the command fails if the service doesn't exist. With --dry-run and -o,
the command fails if the service account can't use the host's network yet.`,
		Example: `  # Install a router for a shard, on its own ports
  oc adm router gold --ports=8081:8081,8444:8444 --stats-port=1937
  oc set env dc/gold ROUTE_LABELS=tier=gold

  # Install two pods behind a service, without host ports
  oc adm router inner --host-network=false --host-ports=false --replicas=2

  # Install a router that configures an F5 BIG-IP appliance
  oc adm router f5 --type=f5-router --external-host=f5.example.com --external-host-username=admin --external-host-password=PASSWORD

  # Print the objects without creating them
  oc adm router --dry-run -o yaml`,
		Args: cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(r.complete(args))
			util.CheckErr(r.run(command.Context()))
		},
	}
	r.print.AddFlags(command)
	flags := command.Flags()
	flags.BoolVar(&r.dryRun, "dry-run", false, "Change nothing: report whether the router exists, or with -o, print the objects and check the permissions of the service account.")
	flags.BoolVar(&r.local, "local", false, "With -o, print the objects without contacting the server.")
	flags.Bool("create", true, "Ignored. Accepted for compatibility with OpenShift 3: the command always creates a missing router.")
	flags.Bool("expose-metrics", false, "Ignored. Accepted for compatibility with OpenShift 3.")
	flags.String("metrics-image", "", "Ignored. Accepted for compatibility with OpenShift 3.")
	flags.Bool("secrets-as-env", false, "Ignored. Accepted for compatibility with OpenShift 3.")
	for _, name := range []string{"expose-metrics", "metrics-image"} {
		// MarkDeprecated cannot fail because the flag exists.
		_ = flags.MarkDeprecated(name, "it has no effect: the router serves metrics on --stats-port")
	}
	_ = flags.MarkDeprecated("secrets-as-env", "it has no effect: the pods use their service account")
	_ = flags.MarkHidden("create")
	r.request.AddFlags(flags)
	return command
}

// complete sets the objects' name and namespace.
func (r *admRouter) complete(args []string) (err error) {
	r.request.Name = "router"
	if len(args) > 0 {
		r.request.Name = args[0]
	}
	r.request.Namespace, _, err = r.factory.ToRawKubeConfigLoader().Namespace()
	return err
}

func (r *admRouter) run(ctx context.Context) error {
	desired, notes, err := r.request.Objects()
	if err != nil {
		return err
	}
	format := *r.print.OutputFormat
	if format == "" && r.local {
		return errors.New("--local needs -o: without the server, the command only prints objects")
	}
	if prints := objects.ReplacesCreation(format) || format != "" && (r.dryRun || r.local); !prints {
		exists, err := r.exists(ctx)
		if err != nil {
			return err
		}
		if exists {
			fmt.Fprintf(r.Out, "Router %q service exists\n", r.request.Name)
			return nil
		}
		if r.dryRun {
			return fmt.Errorf("Router %q service does not exist", r.request.Name)
		}
	}
	for _, note := range notes {
		fmt.Fprintf(r.ErrOut, "note: %s\n", note)
	}
	if err := r.create(ctx, "router "+r.request.Name, r.request.Namespace, desired); err != nil || !r.dryRun || r.local {
		return err
	}
	if err := r.hostAccess(ctx, r.request.Namespace, desired); err != nil {
		return fmt.Errorf("router could not be created; %w", err)
	}
	return nil
}

// exists reports whether a service with the router's name exists.
func (r *admRouter) exists(ctx context.Context) (bool, error) {
	client, err := r.factory.DynamicClient()
	if err != nil {
		return false, err
	}
	_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(r.request.Namespace).Get(ctx, r.request.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find router %q: %w", r.request.Name, err)
	}
	return true, nil
}
