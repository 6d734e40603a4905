// Package run makes `oc run`: kubectl's, which makes a pod, and as in OpenShift 3.11 what makes
// pods as well: a deployment configuration by default, a job or a cron job.
//
// Source: OpenShift 3.11's client, whose flags and generators these are.
package run

import (
	"errors"
	"fmt"
	"slices"

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

// The generators, which say what is made.
const (
	configGenerator = "deploymentconfig/v1"
	podGenerator    = "run-pod/v1"
	jobGenerator    = "job/v1"
	cronGenerator   = "cronjob/v1beta1"
)

// New returns the command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlrun.NewCmdRun(factory, streams)
	command.Short = "Run a particular image on the cluster"
	command.Long = `Create what runs an image: a deployment configuration by default, a job with --restart=OnFailure, a pod with --restart=Never, a cron job with
--schedule. --generator names it by itself.

Whoever attaches to the container, by --attach, -i or -t, gets a pod, unless a generator is named: then it is the first pod of what is made.`
	command.Example = `  oc run web --image=registry.example.com/web --port=8080 --replicas=2 --env=MODE=fast
  oc run once --image=registry.example.com/tool --restart=OnFailure -- import /data
  oc run nightly --image=registry.example.com/tool --schedule="0 3 * * *" --restart=OnFailure -- clean
  oc run shell --image=registry.example.com/tool -it --rm --restart=Never -- sh`
	w := &wish{command: command}
	flags := command.Flags()
	flags.StringVar(&w.generator, "generator", "", "What to make: "+configGenerator+", "+podGenerator+", "+jobGenerator+" or "+cronGenerator+"; by default what --restart and --schedule call for.")
	flags.Int32VarP(&w.replicas, "replicas", "r", 1, "Number of pods of a deployment configuration.")
	flags.StringVar(&w.schedule, "schedule", "", "When a cron job runs, in the format of cron.")
	pod := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		util.CheckErr(w.choose())
		if w.generator == podGenerator {
			pod(command, args)
			return
		}
		util.CheckErr(w.read(args))
		util.CheckErr(w.run(factory, streams))
	}
	return command
}

// choose finds the generator, and looks for flags that do not fit it.
func (w *wish) choose() (err error) {
	flags := w.command.Flags()
	restart, _ := flags.GetString("restart") // kubectl's
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
	if w.generator == "cronjob/v1" || w.generator == "cronjob/v2alpha1" {
		w.generator = cronGenerator
	}
	switch {
	case !slices.Contains([]string{configGenerator, podGenerator, jobGenerator, cronGenerator}, w.generator):
		return fmt.Errorf("read --generator %q: must be %s, %s, %s or %s", w.generator, configGenerator, podGenerator, jobGenerator, cronGenerator)
	case (w.schedule != "") != (w.generator == cronGenerator):
		return errors.New("a cron job needs --schedule, and nothing else takes it")
	case flags.Changed("replicas") && w.generator != configGenerator:
		return errors.New("only a deployment configuration has --replicas")
	case w.generator == configGenerator && restart != "Always":
		return fmt.Errorf("pods of a deployment configuration are always restarted: leave --restart=%s out", restart)
	case w.generator == podGenerator:
		return nil // kubectl checks its own
	}
	dry, err := util.GetDryRunStrategy(w.command)
	if err != nil {
		return err
	}
	return w.session.check(w.generator, w.replicas, dry != util.DryRunNone)
}

// run makes the objects, and attaches where that is wanted. What is made for the session alone goes
// with it.
func (w *wish) run(factory util.Factory, streams genericiooptions.IOStreams) (err error) {
	made, err := w.make(factory, streams)
	if err != nil || !w.session.attach {
		return err
	}
	if w.session.remove {
		defer func() { err = errors.Join(err, remove(factory, made)) }()
	}
	return w.session.open(w.command.Context(), factory, streams, w.command.Parent().CommandPath()+" attach", made[0])
}

// make creates the objects, or shows what they would be.
func (w *wish) make(factory util.Factory, streams genericiooptions.IOStreams) (made []runtime.Object, err error) {
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
				return made, err
			}
			made = append(made, object)
		}
		if w.session.attach { // what it says comes from the container
			continue
		}
		if err := printer.PrintObj(object, streams.Out); err != nil {
			return made, err
		}
	}
	return made, nil
}

// create creates an object in a namespace.
func create(factory util.Factory, namespace string, object runtime.Object, dry bool) (runtime.Object, error) {
	client, mapping, err := clientFor(factory, object)
	if err != nil {
		return nil, err
	}
	made, err := resource.NewHelper(client, mapping).DryRun(dry).Create(namespace, false, object)
	if err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
	return made, nil
}

// clientFor is the client of an object's kind.
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
