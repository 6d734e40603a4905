// Package run implements `oc run`. kubectl's command creates only pods. As in OpenShift 3.11, this
// command creates a deployment config by default, and can also create a job or a cron job.
//
// The flags and generators follow OpenShift 3.11's client.
package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlrun "k8s.io/kubectl/pkg/cmd/run"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// Generators. Each generator creates objects of one kind.
const (
	configGenerator = "deploymentconfig/v1"
	podGenerator    = "run-pod/v1"
	jobGenerator    = "job/v1"
	cronGenerator   = "cronjob/v1beta1"
	// These generators were deprecated in OpenShift 3.
	controllerGenerator = "run-controller/v1"
	deploymentGenerator = "deployment/apps.v1"
)

// New returns the `oc run` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlrun.NewCmdRun(factory, streams)
	command.Short = "Run a particular image on the cluster"
	command.Long = `Run an image in a deployment configuration by default, in a job with --restart=OnFailure, in a pod with --restart=Never, or in a cron job with
--schedule. --generator selects the kind explicitly.

With --attach, -i or -t, the default is a pod. If a generator is set, the command attaches to the first pod of its object.`
	command.Example = `  oc run web --image=registry.example.com/web --port=8080 --replicas=2 --env=MODE=fast
  oc run once --image=registry.example.com/tool --restart=OnFailure -- import /data
  oc run nightly --image=registry.example.com/tool --schedule="0 3 * * *" --restart=OnFailure -- clean
  oc run shell --image=registry.example.com/tool -it --rm --restart=Never -- sh`
	w := &request{command: command}
	flags := command.Flags()
	flags.StringVar(&w.generator, "generator", "", "What to create: "+strings.Join(generators(), ", ")+".")
	flags.Int32VarP(&w.replicas, "replicas", "r", 1, "Number of pods of a deployment configuration.")
	flags.StringVar(&w.schedule, "schedule", "", "Schedule of a cron job, in the format of cron.")
	w.podFlags.add(flags)
	pod := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		util.CheckErr(w.choose())
		if w.generator == podGenerator {
			dry, err := util.GetDryRunStrategy(command)
			util.CheckErr(err)
			util.CheckErr(w.session.checkDryRun(dry != util.DryRunNone))
			util.CheckErr(w.read(args))
			util.CheckErr(w.podFlags.overrides(command, w.pod.Spec))
			pod(command, args)
			return
		}
		util.CheckErr(w.read(args))
		util.CheckErr(w.run(factory, streams))
	}
	return command
}

// generators returns the documented values of --generator. choose also accepts earlier versions of
// these values.
func generators() []string {
	return []string{configGenerator, podGenerator, jobGenerator, cronGenerator, deploymentGenerator, controllerGenerator}
}

// choose determines the generator, and checks that it supports the flags.
func (w *request) choose() (err error) {
	flags := w.command.Flags()
	restart, _ := flags.GetString("restart") // as in kubectl, this flag selects the generator
	if w.session, err = readSession(w.command); err != nil {
		return err
	}
	switch {
	case w.generator != "":
	case w.schedule != "":
		w.generator = cronGenerator
	case w.session.attach || w.session.stdin || restart == "Never":
		w.generator = podGenerator
	case restart == "OnFailure":
		w.generator = jobGenerator
	default:
		w.generator = configGenerator
	}
	switch w.generator {
	case "cronjob/v1", "cronjob/v2alpha1":
		w.generator = cronGenerator
	case "run/v1":
		w.generator = controllerGenerator
	case "deployment/v1beta1", "deployment/apps.v1beta1":
		w.generator = deploymentGenerator
	}
	replicated := slices.Contains([]string{configGenerator, controllerGenerator, deploymentGenerator}, w.generator)
	switch {
	case !slices.Contains(generators(), w.generator):
		return fmt.Errorf("parse --generator %q: must be one of %s", w.generator, strings.Join(generators(), ", "))
	case (w.schedule != "") != (w.generator == cronGenerator):
		return errors.New("a cron job needs --schedule, and other kinds do not support --schedule")
	case flags.Changed("replicas") && !replicated:
		return errors.New("only deployment configurations, deployments and replication controllers support --replicas")
	case replicated && restart != "Always":
		return fmt.Errorf("pods of %s are always restarted; omit --restart=%s", w.generator, restart)
	case w.generator == podGenerator:
		return nil // kubectl checks the flags itself
	}
	dry, err := util.GetDryRunStrategy(w.command)
	if err != nil {
		return err
	}
	return w.session.check(w.generator, w.replicas, dry != util.DryRunNone)
}

// run creates the objects and, if the flags request it, attaches to the container. With --rm, it
// then deletes the objects.
func (w *request) run(factory util.Factory, streams genericiooptions.IOStreams) (err error) {
	objects, err := w.make(factory, streams)
	if err != nil || !w.session.attach {
		return err
	}
	if w.session.remove {
		defer func() { err = errors.Join(err, remove(factory, objects)) }()
	}
	return w.session.open(w.command.Context(), factory, streams, w.command.Parent().CommandPath()+" attach", objects[0])
}

// make creates the objects. It prints them unless the command attaches to a container. A dry run
// does not create any objects.
func (w *request) make(factory util.Factory, streams genericiooptions.IOStreams) (result []runtime.Object, err error) {
	dry, err := util.GetDryRunStrategy(w.command)
	if err != nil {
		return nil, err
	}
	print := genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	*print.OutputFormat = util.GetFlagString(w.command, "output")
	util.PrintFlagsWithDryRunStrategy(print, dry)
	printer, err := print.ToPrinter()
	if err != nil {
		return nil, err
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	objects, err := w.objects()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if dry != util.DryRunClient {
			if object, err = create(factory, namespace, object, dry == util.DryRunServer); err != nil {
				return result, err
			}
			result = append(result, object)
		}
		if w.session.attach { // attached users see the container's output instead
			continue
		}
		if err := printer.PrintObj(object, streams.Out); err != nil {
			return result, err
		}
	}
	return result, nil
}

// create creates an object in a namespace.
func create(factory util.Factory, namespace string, object runtime.Object, dry bool) (runtime.Object, error) {
	client, mapping, err := clientFor(factory, object)
	if err != nil {
		return nil, err
	}
	result, err := resource.NewHelper(client, mapping).DryRun(dry).Create(namespace, false, object)
	if err != nil {
		return nil, err
	}
	result.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
	return result, nil
}

// clientFor returns a client for an object's kind, and the mapping from the kind to its resource.
func clientFor(factory util.Factory, object runtime.Object) (resource.RESTClient, *meta.RESTMapping, error) {
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, nil, err
	}
	kind := object.GetObjectKind().GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, err
	}
	client, err := factory.ClientForMapping(mapping)
	return client, mapping, err
}
