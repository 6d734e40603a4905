// Package run makes `oc run`: kubectl's, which makes a pod, and as in OpenShift 3.11 what makes pods as well: a deployment configuration by default, a job
// or a cron job.
//
// Source: OpenShift 3.11's client, whose flags and generators these are.
package run

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
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

// New makes the command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlrun.NewCmdRun(factory, streams)
	command.Short = "Run a particular image on the cluster"
	command.Long = `Create what runs an image: a deployment configuration by default, a job with --restart=OnFailure, a pod with --restart=Never, a cron job with
--schedule. --generator names it by itself.

Whoever attaches to the container, by --attach, -i or -t, gets a pod, unless a generator is named.`
	command.Example = `  oc run web --image=registry.example.com/web --port=8080 --replicas=2 --env=MODE=fast
  oc run once --image=registry.example.com/tool --restart=OnFailure -- import /data
  oc run nightly --image=registry.example.com/tool --schedule="0 3 * * *" --restart=OnFailure -- clean
  oc run shell --image=registry.example.com/tool -it --rm --restart=Never -- sh`
	w := &wish{}
	flags := command.Flags()
	flags.StringVar(&w.generator, "generator", "", "What to make: "+configGenerator+", "+podGenerator+", "+jobGenerator+" or "+cronGenerator+"; by default what --restart and --schedule call for.")
	flags.Int32VarP(&w.replicas, "replicas", "r", 1, "Number of pods of a deployment configuration.")
	flags.StringVar(&w.schedule, "schedule", "", "When a cron job runs, in the format of cron.")
	pod := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		util.CheckErr(w.choose(command))
		if w.generator == podGenerator {
			pod(command, args)
			return
		}
		util.CheckErr(w.read(command, args))
		util.CheckErr(w.make(factory, streams, command))
	}
	return command
}

// choose finds the generator, and looks for flags that do not fit it.
func (w *wish) choose(command *cobra.Command) error {
	flags := command.Flags()
	restart, _ := flags.GetString("restart") // kubectl's
	attaches := slices.ContainsFunc([]string{"attach", "stdin", "tty", "rm"}, func(name string) bool {
		wanted, _ := flags.GetBool(name)
		return wanted
	})
	switch {
	case w.generator != "":
	case w.schedule != "":
		w.generator = cronGenerator
	case attaches || restart == "Never":
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
	case attaches && w.generator != podGenerator:
		return fmt.Errorf("--attach, --stdin, --tty and --rm are for pods: give --generator=%s, or attach later with oc attach", podGenerator)
	}
	return nil
}

// make creates the objects, or shows them.
func (w *wish) make(factory util.Factory, streams genericiooptions.IOStreams, command *cobra.Command) error {
	dry, err := util.GetDryRunStrategy(command)
	if err != nil {
		return err
	}
	print := genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	*print.OutputFormat = util.GetFlagString(command, "output")
	util.PrintFlagsWithDryRunStrategy(print, dry)
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	objects, err := w.objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if dry != util.DryRunClient {
			if object, err = create(factory, namespace, object, dry == util.DryRunServer); err != nil {
				return err
			}
		}
		if err := printer.PrintObj(object, streams.Out); err != nil {
			return err
		}
	}
	return nil
}

// create creates an object in a namespace.
func create(factory util.Factory, namespace string, object runtime.Object, dry bool) (runtime.Object, error) {
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	kind := object.GetObjectKind().GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	client, err := factory.ClientForMapping(mapping)
	if err != nil {
		return nil, err
	}
	return resource.NewHelper(client, mapping).DryRun(dry).Create(namespace, false, object)
}
