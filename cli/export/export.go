// Package export implements `oc export`, which prints objects in a form that other clusters accept.
package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	templatev1 "github.com/openshift/api/template/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/objects"
)

// export holds the state of `oc export`.
type export struct {
	resource.FilenameOptions
	genericiooptions.IOStreams
	print              *genericclioptions.PrintFlags
	selector, template string
	everywhere         bool
	exact, raw         bool
}

// New returns the `oc export` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &export{IOStreams: streams, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "export RESOURCE/NAME ... [options]",
		Short: "Export resources so they can be used elsewhere",
		Long: `Print objects without the properties that belong to this cluster, so that they can be created elsewhere, or as a template.

The command removes everything that the server sets: UIDs, versions, times, status, addresses of services, nodes of pods, and the tokens of service
accounts. --exact keeps properties that the object's author can set, such as the project and the address of a service, and the secrets of accounts.
--raw changes nothing.`,
		Example: `  # Export the service and the deployment configuration of an application
  oc export svc,dc -l app=shop

  # Export everything in the project as a template
  oc export all --as-template=shop`,
		Run: func(command *cobra.Command, args []string) {
			if o.exact && o.raw {
				util.CheckErr(util.UsageErrorf(command, "--exact and --raw cannot be used together"))
			}
			if len(args) == 0 && util.IsFilenameSliceEmpty(o.Filenames, o.Kustomize) {
				util.CheckErr(util.UsageErrorf(command, "specify what to export, such as svc/front or all"))
			}
			util.CheckErr(o.run(factory, args))
		},
	}
	o.print.AddFlags(command)
	util.AddFilenameOptionFlags(command, &o.FilenameOptions, "of the objects to export.")
	flags := command.Flags()
	flags.StringVar(&o.template, "as-template", "", "Print a template with this name that contains the objects.")
	flags.BoolVar(&o.exact, "exact", false, "Keep properties that the author of an object can set.")
	flags.BoolVar(&o.raw, "raw", false, "Print the objects unchanged.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Labels of the objects.")
	flags.Bool("all", true, "No effect: all objects are exported.")
	util.CheckErr(flags.MarkDeprecated("all", "all objects are exported"))
	flags.BoolVar(&o.everywhere, "all-namespaces", false, "Export from every project.")
	return command
}

// Get implements `oc get --export`, with the flags of `oc get`. As in OpenShift 3.11, it keeps the
// fields that an object's author can set.
func Get(factory util.Factory, streams genericiooptions.IOStreams, command *cobra.Command, args []string) error {
	o := &export{
		IOStreams: streams, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme), exact: true,
		selector: util.GetFlagString(command, "selector"), everywhere: util.GetFlagBool(command, "all-namespaces"),
	}
	o.Filenames, o.Recursive = util.GetFlagStringSlice(command, "filename"), util.GetFlagBool(command, "recursive")
	*o.print.OutputFormat = util.GetFlagString(command, "output")
	*o.print.TemplatePrinterFlags.TemplateArgument = util.GetFlagString(command, "template")
	if *o.print.OutputFormat == "" && *o.print.TemplatePrinterFlags.TemplateArgument != "" {
		*o.print.OutputFormat = "go-template" // kubectl's `get` has the same default
	}
	o.print.OutputFlagSpecified = func() bool { return true }
	return o.run(factory, args)
}

func (o *export) run(factory util.Factory, args []string) error {
	namespace, enforce, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	builder := factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().AllNamespaces(o.everywhere).
		FilenameParam(enforce, &o.FilenameOptions).LabelSelectorParam(o.selector).ResourceTypeOrNameArgs(true, args...).
		ContinueOnError().Flatten()
	if len(args) > 0 { // objects from files are not read from the server
		builder = builder.Latest()
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return errors.New("no resources found - nothing to export")
	}
	var objects []runtime.Object
	for _, info := range infos {
		object := info.Object.(*unstructured.Unstructured)
		if !o.raw {
			strip(object, o.exact)
		}
		objects = append(objects, object)
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	object, err := o.together(objects)
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.Out)
}

// together combines the objects into one object: the only object, a list or, with --as-template, a
// template.
func (o *export) together(all []runtime.Object) (runtime.Object, error) {
	if o.template == "" {
		if len(all) == 1 {
			return all[0], nil
		}
		return objects.ListOf(all), nil
	}
	template := &templatev1.Template{
		TypeMeta:   metav1.TypeMeta{APIVersion: templatev1.GroupVersion.String(), Kind: "Template"},
		ObjectMeta: metav1.ObjectMeta{Name: o.template},
	}
	for _, object := range all {
		raw, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
		if err != nil {
			return nil, fmt.Errorf("write template %q: %w", o.template, err)
		}
		template.Objects = append(template.Objects, runtime.RawExtension{Raw: raw})
	}
	return template, nil
}

// serverFields are the metadata fields that the server sets. strip removes them from every object.
var serverFields = []string{"uid", "resourceVersion", "creationTimestamp", "selfLink", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"}

// kindFields maps each kind to its cluster-specific fields outside the metadata. strip always
// removes the fields in always. It removes the fields in unlessExact only if exact is false.
var kindFields = map[string]struct{ always, unlessExact [][]string }{
	"Service":               {nil, [][]string{{"spec", "healthCheckNodePort"}}},
	"Pod":                   {[][]string{{"spec", "nodeName"}}, [][]string{{"spec", "serviceAccount"}}},
	"PersistentVolumeClaim": {nil, [][]string{{"spec", "volumeName"}}},
	"PersistentVolume":      {[][]string{{"spec", "claimRef", "uid"}, {"spec", "claimRef", "resourceVersion"}}, nil},
	"Namespace":             {[][]string{{"spec", "finalizers"}}, nil},
	"Project":               {[][]string{{"spec", "finalizers"}}, nil},
	"Identity":              {[][]string{{"user", "uid"}}, nil},
	"Job":                   {[][]string{{"spec", "selector"}, {"spec", "template", "metadata", "labels", "controller-uid"}, {"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"}}, nil},
	"BuildConfig":           {nil, [][]string{{"spec", "nodeSelector"}}},
}

// emptyStatus maps kinds to the status that their exported objects have, as in OpenShift 3.
// Exported objects of all other kinds have no status.
var emptyStatus = map[string]map[string]any{
	"BuildConfig": {"lastVersion": int64(0)},
	"DeploymentConfig": {
		"availableReplicas": int64(0), "latestVersion": int64(0), "observedGeneration": int64(0), "replicas": int64(0), "unavailableReplicas": int64(0), "updatedReplicas": int64(0),
	},
}

// strip removes the cluster-specific fields. If exact is set, it keeps the namespace and the fields
// in unlessExact.
func strip(object *unstructured.Unstructured, exact bool) {
	for _, field := range serverFields {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return slices.Contains([]string{corev1.LastAppliedConfigAnnotation, "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"}, key)
	})
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
	delete(object.Object, "status")
	if status := emptyStatus[object.GetKind()]; status != nil {
		object.Object["status"] = maps.Clone(status)
	}
	fields := kindFields[object.GetKind()]
	remove := fields.always
	if !exact {
		unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
		remove = append(slices.Clone(remove), fields.unlessExact...)
	}
	for _, path := range remove {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if exact {
		return
	}
	switch object.GetKind() {
	case "Service":
		stripService(object)
	case "ServiceAccount":
		stripTokens(object)
	case "DeploymentConfig":
		stripTriggered(object)
	}
}

// stripService removes the addresses and node ports of a service, because they can be in use in
// another cluster. A headless service stays headless.
func stripService(object *unstructured.Unstructured) {
	if address, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); address != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
	}
	ports, ok, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	if !ok {
		return
	}
	for _, port := range ports {
		if content, ok := port.(map[string]any); ok {
			delete(content, "nodePort")
		}
	}
	// The call cannot fail, because the field already contains a list.
	_ = unstructured.SetNestedSlice(object.Object, ports, "spec", "ports")
}

// stripTokens removes references to secrets that the server created for a service account.
func stripTokens(object *unstructured.Unstructured) {
	for _, field := range []string{"secrets", "imagePullSecrets"} {
		list, _, _ := unstructured.NestedSlice(object.Object, field)
		list = slices.DeleteFunc(list, func(entry any) bool {
			reference, _ := entry.(map[string]any)
			name, _ := reference["name"].(string)
			return len(name) > len(object.GetName()) && (hasPrefixes(name, object.GetName()+"-token-", object.GetName()+"-dockercfg-"))
		})
		unstructured.RemoveNestedField(object.Object, field)
		if len(list) > 0 {
			// The call cannot fail, because the field already contains a list.
			_ = unstructured.SetNestedSlice(object.Object, list, field)
		}
	}
}

func hasPrefixes(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return len(text) > len(p) && text[:len(p)] == p })
}

// stripTriggered removes the last triggered images from a deployment config's triggers, because
// these images do not exist in another cluster.
func stripTriggered(object *unstructured.Unstructured) {
	triggers, ok, _ := unstructured.NestedSlice(object.Object, "spec", "triggers")
	if !ok {
		return
	}
	for _, trigger := range triggers {
		if content, ok := trigger.(map[string]any); ok {
			unstructured.RemoveNestedField(content, "imageChangeParams", "lastTriggeredImage")
		}
	}
	// The call cannot fail, because the field already contains a list.
	_ = unstructured.SetNestedSlice(object.Object, triggers, "spec", "triggers")
}
