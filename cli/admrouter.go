package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/routerpod"
)

// admRouter is one call of `oc adm router`.
type admRouter struct {
	genericiooptions.IOStreams
	factory util.Factory
	print   *genericclioptions.PrintFlags
	request routerpod.Request
	dryRun  bool
}

// newAdmRouter makes `oc adm router`.
func newAdmRouter(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &admRouter{IOStreams: streams, factory: factory, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "router [NAME]",
		Short: "Install a router",
		Long: `Install a router: pods that serve routes with HAProxy, beside the router that every node has.

Its service account gets the rights that a router needs, and may use the host's network if the pods do. Routers that run on the same
host need different ports: --ports and --stats-port. On ports 80, 443 and 1936 the node serves routes itself, unless the NodeConfig
has slipway.router.disabled. Everything else is set by environment variables: oc set env dc/NAME ROUTE_LABELS=...

If a service of the name is there already, nothing is changed.`,
		Example: `  # A router of a shard on ports of its own
  oc adm router gold --ports=8081:8081,8444:8444 --stats-port=1937
  oc set env dc/gold ROUTE_LABELS=tier=gold

  # Two pods behind a service, which need no ports of the host
  oc adm router inner --host-network=false --host-ports=false --replicas=2

  # Only show what would be made
  oc adm router --dry-run -o yaml`,
		Args: cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(r.run(command.Context(), args))
		},
	}
	r.print.AddFlags(command)
	flags := command.Flags()
	flags.BoolVar(&r.dryRun, "dry-run", false, "Only show what would be made.")
	flags.Bool("create", true, "Accepted for OpenShift 3: the router is made if it is not there.")
	flags.Bool("expose-metrics", false, "Accepted for OpenShift 3.")
	flags.String("metrics-image", "", "Accepted for OpenShift 3.")
	for _, name := range []string{"expose-metrics", "metrics-image"} {
		_ = flags.MarkDeprecated(name, "it has no effect: the router itself tells its metrics, on --stats-port") // the flag is there
	}
	_ = flags.MarkHidden("create")
	r.request.AddFlags(flags)
	return command
}

func (r *admRouter) run(ctx context.Context, args []string) error {
	r.request.Name = "router"
	if len(args) > 0 {
		r.request.Name = args[0]
	}
	namespace, _, err := r.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	r.request.Namespace = namespace
	made, notes, err := r.request.Objects()
	if err != nil {
		return err
	}
	if !r.dryRun {
		there, err := r.exists(ctx)
		if err != nil {
			return err
		}
		if there {
			fmt.Fprintf(r.Out, "Router %q service exists\n", r.request.Name)
			return nil
		}
	}
	for _, note := range notes {
		fmt.Fprintf(r.ErrOut, "note: %s\n", note)
	}
	var all []*unstructured.Unstructured
	for _, object := range made {
		one, err := plain(object)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return r.make(ctx, all)
}

// exists reports whether there is a service of the router's name.
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
		return false, fmt.Errorf("look for router %q: %w", r.request.Name, err)
	}
	return true, nil
}

// make creates the objects, or prints them. What may be shared by routers and is there already is used.
func (r *admRouter) make(ctx context.Context, all []*unstructured.Unstructured) error {
	out, dry := r.Out, ""
	if r.dryRun {
		dry = " (dry run)"
	}
	if *r.print.OutputFormat != "" {
		printer, err := r.print.ToPrinter()
		if err != nil {
			return err
		}
		list := make([]runtime.Object, len(all))
		for i, object := range all {
			list[i] = object
		}
		if err := printer.PrintObj(listOf(list), r.Out); err != nil || r.dryRun {
			return err
		}
		out = io.Discard
	}
	fmt.Fprintf(out, "--> Creating router %s ...\n", r.request.Name)
	for _, object := range all { // rights first: without them there is no pod that cannot work
		name, err := createObject(ctx, r.factory, r.request.Namespace, object, r.dryRun)
		done := "created"
		if apierrors.IsAlreadyExists(err) && slices.Contains([]string{"ServiceAccount", "ClusterRoleBinding", "Role", "RoleBinding"}, object.GetKind()) {
			err = r.share(ctx, object)
			done = "exists, it is used"
		}
		if err != nil {
			fmt.Fprintln(out, "--> Failed")
			return explained(err, object)
		}
		fmt.Fprintf(out, "    %s %s%s\n", name, done, dry)
	}
	fmt.Fprintf(out, "--> Success%s\n", dry)
	return nil
}

// explained adds to a refusal who can do it.
func explained(err error, object *unstructured.Unstructured) error {
	if apierrors.IsForbidden(err) && object.GetKind() == "ClusterRoleBinding" {
		return fmt.Errorf("%w; an administrator of the cluster can, and --own-project needs no such right", err)
	}
	return err
}

// share adds the subjects of a binding to the one that is there; other objects stay as they are.
func (r *admRouter) share(ctx context.Context, object *unstructured.Unstructured) error {
	wanted, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	if len(wanted) == 0 {
		return nil
	}
	client, mapping, err := resourceOf(r.factory, object)
	if err != nil {
		return err
	}
	bindings := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	found, err := bindings.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	role, _, _ := unstructured.NestedString(found.Object, "roleRef", "name")
	if want, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role != want {
		return fmt.Errorf("use %s %q: it gives the role %q, not %q; remove it or choose another name for the router", object.GetKind(), object.GetName(), role, want)
	}
	subjects, _, _ := unstructured.NestedSlice(found.Object, "subjects")
	had := map[[3]any]bool{}
	for _, subject := range subjects {
		had[whom(subject)] = true
	}
	for _, subject := range wanted {
		if !had[whom(subject)] {
			subjects = append(subjects, subject)
		}
	}
	if len(subjects) == len(had) {
		return nil
	}
	if err := unstructured.SetNestedSlice(found.Object, subjects, "subjects"); err != nil {
		return err
	}
	_, err = bindings.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

// whom is whom a subject of a binding means.
func whom(subject any) [3]any {
	fields, _ := subject.(map[string]any)
	return [3]any{fields["kind"], fields["namespace"], fields["name"]}
}
