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

// installation creates the objects of a router or of an IP failover configuration.
type installation struct {
	genericiooptions.IOStreams
	factory util.Factory
	print   *genericclioptions.PrintFlags
	dryRun  bool
	// local means that the command only prints objects, without contacting the server.
	local bool
}

func newInstallation(factory util.Factory, streams genericiooptions.IOStreams) installation {
	return installation{IOStreams: streams, factory: factory, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
}

// create creates the objects and prints messages, or, with `-o name`, only the objects' names. With
// any other -o format, it only prints the objects. Service accounts, roles, bindings and secrets
// can already exist, because they are kept when a router is removed. create adds the desired
// subjects to existing bindings.
func (i *installation) create(ctx context.Context, noun, namespace string, desired []runtime.Object) error {
	var all []*unstructured.Unstructured
	for _, object := range desired {
		plain, err := objects.Plain(object)
		if err != nil {
			return err
		}
		all = append(all, plain)
	}
	format := *i.print.OutputFormat
	if objects.ReplacesCreation(format) {
		return objects.PrintList(i.print, all, i.Out)
	}
	names, err := objects.NamePrinter(i.print)
	if err != nil {
		return err
	}
	out, dry := i.Out, ""
	if format != "" {
		out = io.Discard
	}
	if i.dryRun {
		dry = " (dry run)"
	}
	fmt.Fprintf(out, "--> Creating %s ...\n", noun)
	for _, object := range all { // the order matters, because pods need the accounts and roles
		name, done, err := i.createObject(ctx, namespace, object)
		if err != nil {
			fmt.Fprintln(out, "--> Failed")
			return withRemedy(err, object)
		}
		fmt.Fprintf(out, "    %s %s%s\n", name, done, dry)
		if err := names.PrintObj(object, i.Out); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "--> Success%s\n", dry)
	return nil
}

// createObject creates an object, unless it already exists and can be shared. It returns the
// object's name, and "created" or "already exists".
func (i *installation) createObject(ctx context.Context, namespace string, object *unstructured.Unstructured) (name, done string, err error) {
	if i.local {
		return "", "", nil
	}
	name, err = objects.CreateObject(ctx, i.factory, namespace, object, i.dryRun)
	if apierrors.IsAlreadyExists(err) && slices.Contains([]string{"ServiceAccount", "ClusterRoleBinding", "Role", "RoleBinding", "Secret"}, object.GetKind()) {
		return name, "already exists", i.share(ctx, object)
	}
	return name, "created", err
}

// withRemedy adds advice to the Forbidden error for a cluster role binding.
func withRemedy(err error, object *unstructured.Unstructured) error {
	if apierrors.IsForbidden(err) && object.GetKind() == "ClusterRoleBinding" {
		return fmt.Errorf("%w; ask a cluster administrator to run the command, or use --own-project, which does not need this permission", err)
	}
	return err
}

// share adds a binding's subjects to the existing binding of the same name. It returns an error if
// the existing binding refers to a different role. It ignores objects without subjects.
func (i *installation) share(ctx context.Context, object *unstructured.Unstructured) error {
	desired, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	if len(desired) == 0 {
		return nil
	}
	client, mapping, err := objects.ResourceOf(i.factory, object)
	if err != nil {
		return err
	}
	bindings := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	existing, err := bindings.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	role, _, _ := unstructured.NestedString(existing.Object, "roleRef", "name")
	if want, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role != want {
		return fmt.Errorf("use %s %q: it grants the role %q, not %q; remove it or choose another name", object.GetKind(), object.GetName(), role, want)
	}
	subjects, _, _ := unstructured.NestedSlice(existing.Object, "subjects")
	seen := map[[3]any]bool{}
	for _, subject := range subjects {
		seen[subjectKey(subject)] = true
	}
	for _, subject := range desired {
		if !seen[subjectKey(subject)] {
			subjects = append(subjects, subject)
		}
	}
	if len(subjects) == len(seen) {
		return nil
	}
	if err := unstructured.SetNestedSlice(existing.Object, subjects, "subjects"); err != nil {
		return err
	}
	_, err = bindings.Update(ctx, existing, metav1.UpdateOptions{})
	return err
}

// subjectKey returns a key that identifies a binding's subject.
func subjectKey(subject any) [3]any {
	fields, _ := subject.(map[string]any)
	return [3]any{fields["kind"], fields["namespace"], fields["name"]}
}
