package adm

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/objects"
)

// installation makes the objects of what an administrator installs: a router, or shared addresses.
type installation struct {
	genericiooptions.IOStreams
	factory util.Factory
	print   *genericclioptions.PrintFlags
	dryRun  bool
}

func newInstallation(factory util.Factory, streams genericiooptions.IOStreams) installation {
	return installation{IOStreams: streams, factory: factory, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
}

// make creates the objects that something is made of, or prints them. Accounts and rights that are
// there already are used.
func (i *installation) make(ctx context.Context, what, namespace string, made []runtime.Object) error {
	var all []*unstructured.Unstructured
	for _, object := range made {
		one, err := objects.Plain(object)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	out, dry := i.Out, ""
	if i.dryRun {
		dry = " (dry run)"
	}
	if *i.print.OutputFormat != "" {
		printer, err := i.print.ToPrinter()
		if err != nil {
			return err
		}
		list := make([]runtime.Object, len(all))
		for n, object := range all {
			list[n] = object
		}
		if err := printer.PrintObj(objects.ListOf(list), i.Out); err != nil || i.dryRun {
			return err
		}
		out = io.Discard
	}
	fmt.Fprintf(out, "--> Creating %s ...\n", what)
	for _, object := range all { // rights first: without them there is no pod that cannot work
		name, err := objects.CreateObject(ctx, i.factory, namespace, object, i.dryRun)
		done := "created"
		if apierrors.IsAlreadyExists(err) && slices.Contains([]string{"ServiceAccount", "ClusterRoleBinding", "Role", "RoleBinding"}, object.GetKind()) {
			err = i.share(ctx, object)
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
func (i *installation) share(ctx context.Context, object *unstructured.Unstructured) error {
	wanted, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	if len(wanted) == 0 {
		return nil
	}
	client, mapping, err := objects.ResourceOf(i.factory, object)
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
		return fmt.Errorf("use %s %q: it gives the role %q, not %q; remove it or choose another name", object.GetKind(), object.GetName(), role, want)
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
