package set

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	"github.com/spf13/cobra"
	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

// resolveNames is an annotation on workloads. Its value * means that image names in the workload
// can refer to image streams in the same project.
const resolveNames = "alpha.image.policy.openshift.io/resolve-names"

// lookup holds the state of `oc set image-lookup`.
type lookup struct{ enabled, list bool }

func newImageLookup(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, l := newTargets(factory, streams, "image lookup updated"), &lookup{}
	command := &cobra.Command{
		Use:   "image-lookup STREAMNAME... | TYPE/NAME... | --all | --list TYPE",
		Short: "Change how images are resolved when deploying applications",
		Long: `Allow the pods of a project to use its image streams as images: with local lookup of the stream "mysql", the image "mysql:latest" is that tag
instead of an image of a registry. On a workload, it applies to all streams of its project.

Without arguments, and with --list, the command prints the current settings. With --list, a name without a slash is a resource.`,
		Example: `  oc set image-lookup
  oc set image-lookup mysql
  oc set image-lookup deploy/mysql
  oc set image-lookup mysql --enabled=false
  oc set image-lookup --all
  oc set image-lookup deployments --list`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(l.run(t, command, args))
		},
	}
	t.addFlags(command)
	command.Flags().BoolVar(&l.enabled, "enabled", true, "Enable local lookup. --enabled=false disables it.")
	command.Flags().BoolVar(&l.list, "list", false, "Print the current settings.")
	return command
}

func (l *lookup) run(t *targets, command *cobra.Command, args []string) error {
	for i, arg := range args {
		switch {
		case strings.Contains(arg, "/"):
		case l.list: // as in OpenShift 3, the argument is a resource
			t.all = t.selector == ""
		default:
			args[i] = "imagestreams/" + arg
		}
	}
	if len(args) == 0 && len(t.files.Filenames) == 0 && t.files.Kustomize == "" {
		l.list = l.list || !t.all && t.selector == ""
		t.all = t.selector == ""
		args = []string{"imagestreams"}
	}
	infos, err := t.find(args)
	if err != nil {
		return err
	}
	if l.list {
		return l.print(t.streams, infos)
	}
	return t.change(command, infos, l.change)
}

// change enables or disables image lookup in an image stream or a workload. In a workload, it
// changes the annotation on both the workload and its pod template.
func (l *lookup) change(object runtime.Object) error {
	if stream, ok := object.(*imagev1.ImageStream); ok {
		stream.Spec.LookupPolicy.Local = l.enabled
		return nil
	}
	template, ok := podTemplate(object)
	if !ok {
		return errors.New("only image streams, pods and controllers of pods support image lookup")
	}
	head, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	for _, object := range []metav1.Object{head, template} {
		if object == nil {
			continue
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[resolveNames] = "*"; !l.enabled {
			delete(annotations, resolveNames)
		}
		object.SetAnnotations(annotations)
	}
	return nil
}

// podTemplate returns the metadata of an object's pod template. It returns nil and true for a pod,
// which has no template, and for a job, whose template is immutable. For objects of other kinds, it
// returns nil and false.
func podTemplate(object runtime.Object) (template metav1.Object, ok bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		return nil, true
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			o.Spec.Template = &corev1.PodTemplateSpec{}
		}
		return o.Spec.Template, true
	case *appsv1.DeploymentConfig:
		if o.Spec.Template == nil {
			o.Spec.Template = &corev1.PodTemplateSpec{}
		}
		return o.Spec.Template, true
	case *kubeappsv1.Deployment:
		return &o.Spec.Template, true
	case *kubeappsv1.ReplicaSet:
		return &o.Spec.Template, true
	case *kubeappsv1.StatefulSet:
		return &o.Spec.Template, true
	case *kubeappsv1.DaemonSet:
		return &o.Spec.Template, true
	case *batchv1.Job:
		return nil, true // the template is immutable
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template, true
	}
	return nil, false
}

// print prints the current settings. If a workload has no annotation, lookup is disabled.
func (l *lookup) print(streams genericiooptions.IOStreams, infos []*resource.Info) error {
	table := tabwriter.NewWriter(streams.Out, 0, 8, 1, '\t', 0)
	fmt.Fprintln(table, "NAME\tLOCAL")
	for _, info := range infos {
		if stream, ok := info.Object.(*imagev1.ImageStream); ok {
			fmt.Fprintf(table, "%s\t%t\n", stream.Name, stream.Spec.LookupPolicy.Local)
			continue
		}
		head, err := meta.Accessor(info.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%t\n", info.ObjectName(), head.GetAnnotations()[resolveNames] == "*")
	}
	return table.Flush()
}
