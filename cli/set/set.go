// Package set implements the `oc set` commands that kubectl does not have: build-hook,
// build-secret, deployment-hook, image-lookup, probe, route-backends, triggers and volume. It also
// extends kubectl's env command with support for build configs, and kubectl's image command with
// support for image streams.
package set

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/klog/v2"
	kubectlset "k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// Register adds routes and image streams to kubectl's scheme, so that kubectl can decode them. It
// must be called once, at the start of the process.
func Register() error {
	if err := errors.Join(routev1.Install(scheme.Scheme), imagev1.Install(scheme.Scheme)); err != nil {
		return fmt.Errorf("register routes and image streams: %w", err)
	}
	return nil
}

// Commands returns the `oc set` subcommands in this package.
func Commands(factory util.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	all := []*cobra.Command{
		newBuildHook(factory, streams),
		newBuildSecret(factory, streams),
		newDeploymentHook(factory, streams),
		newEnv(factory, streams),
		newImage(factory, streams),
		newImageLookup(factory, streams),
		newProbe(factory, streams),
		newBackends(factory, streams),
		newTriggers(factory, streams),
		newVolume(factory, streams),
	}
	for _, command := range all {
		onlyPrint(command)
	}
	return all
}

// onlyPrint makes a command's -o flag imply a dry run unless --dry-run is set, as in OpenShift
// 3.11.
func onlyPrint(command *cobra.Command) {
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		flags := command.Flags()
		if (flags.Changed("output") || flags.Changed("template")) && !flags.Changed("dry-run") {
			util.CheckErr(flags.Set("dry-run", "client"))
		}
		run(command, args)
	}
}

// Volume returns the `oc volume` command, the deprecated form of `oc set volume`.
func Volume(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := newVolume(factory, streams)
	onlyPrint(command)
	command.Deprecated = "use oc set volume"
	return command
}

// targets selects the objects that a command changes. It uses kubectl's flags.
type targets struct {
	factory    util.Factory
	streams    genericiooptions.IOStreams
	print      *genericclioptions.PrintFlags
	files      resource.FilenameOptions
	selector   string
	all, local bool
	flags      *pflag.FlagSet
	// noun describes the objects that the command can change, such as build configs. It is empty if
	// the command can change objects of any kind.
	noun string
}

// newTargets returns the targets of a command. For each changed object, the command prints the
// object's name, followed by done.
func newTargets(factory util.Factory, streams genericiooptions.IOStreams, done string) *targets {
	return &targets{factory: factory, streams: streams, print: genericclioptions.NewPrintFlags(done).WithTypeSetter(scheme.Scheme)}
}

func (t *targets) addFlags(command *cobra.Command) {
	t.flags = command.Flags()
	t.print.AddFlags(command)
	util.AddFilenameOptionFlags(command, &t.files, "naming the objects to change.")
	util.AddDryRunFlag(command)
	util.AddLabelSelectorFlagVar(command, &t.selector)
	command.Flags().BoolVar(&t.all, "all", false, "Change all objects of the named types in the project.")
	command.Flags().BoolVar(&t.local, "local", false, "Change only the objects in the files and print them, without contacting the server.")
}

// check returns an error if neither arguments nor flags select objects.
func (t *targets) check(args []string) error {
	if len(args) > 0 || t.all || t.selector != "" || !util.IsFilenameSliceEmpty(t.files.Filenames, t.files.Kustomize) {
		return nil
	}
	return fmt.Errorf("one or more %s must be specified as <resource>/<name>, or their files with -f", cmp.Or(t.noun, "resources"))
}

// prints reports whether a command only prints the changed objects, without changing them on the
// server.
func prints(flags *pflag.FlagSet) bool {
	dry := flags.Lookup("dry-run")
	return (flags.Changed("output") || flags.Changed("template")) && dry != nil && dry.Value.String() == "client"
}

// find reads the objects that the arguments and flags select. As in OpenShift 3.11, objects in
// files do not have to exist on the server if the command only prints them.
func (t *targets) find(args []string) ([]*resource.Info, error) {
	if err := t.check(args); err != nil {
		return nil, err
	}
	namespace, enforce, err := t.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil && !t.local {
		return nil, err
	}
	builder := t.factory.NewBuilder().WithScheme(scheme.Scheme, scheme.Scheme.PrioritizedVersionsAllGroups()...).LocalParam(t.local).
		ContinueOnError().NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforce, &t.files).Flatten()
	if t.local && len(args) > 0 {
		return nil, resource.LocalResourceError
	}
	if !t.local {
		builder = builder.LabelSelectorParam(t.selector).ResourceTypeOrNameArgs(t.all, args...)
	}
	if !t.local && !(len(t.files.Filenames) > 0 && prints(t.flags)) {
		builder = builder.Latest()
	}
	infos, err := builder.Do().Infos()
	if err == nil && len(infos) == 0 {
		err = errors.New("no resources found")
	}
	return infos, err
}

// apply changes the objects that the arguments and flags select.
func (t *targets) apply(command *cobra.Command, args []string, change func(runtime.Object) error) error {
	infos, err := t.find(args)
	if err != nil {
		return err
	}
	return t.change(command, infos, change)
}

// change changes objects, saves them on the server unless flags request otherwise, and prints them.
func (t *targets) change(command *cobra.Command, infos []*resource.Info, change func(runtime.Object) error) error {
	dry, err := util.GetDryRunStrategy(command)
	if err != nil {
		return err
	}
	util.PrintFlagsWithDryRunStrategy(t.print, dry)
	printer, err := t.print.ToPrinter()
	if err != nil {
		return err
	}
	return t.store(infos, change, dry, func(object runtime.Object) error { return printer.PrintObj(object, t.streams.Out) })
}

// unchanged is the error for a change that does not apply to an object. As in OpenShift 3, the
// command only prints a warning.
type unchanged struct{ reason string }

// Error returns the reason.
func (u *unchanged) Error() string { return u.reason }

// store changes objects and patches them on the server. The patch can be a dry run. store calls
// done for each object. If an object cannot be changed, store continues with the other objects, and
// returns all errors at the end.
func (t *targets) store(infos []*resource.Info, change func(runtime.Object) error, dry util.DryRunStrategy, done func(runtime.Object) error) error {
	encoder := scheme.DefaultJSONEncoder()
	patches := kubectlset.CalculatePatches(infos, encoder, func(object runtime.Object) ([]byte, error) {
		if err := change(object); err != nil {
			return nil, err
		}
		return runtime.Encode(encoder, object)
	})
	var problems []error
	for _, patch := range patches {
		name := strings.TrimSpace(patch.Info.ObjectName()) // ObjectName can end with a line break
		var same *unchanged
		if errors.As(patch.Err, &same) {
			fmt.Fprintf(t.streams.ErrOut, "warning: %s %s\n", name, same.reason)
			continue
		}
		if patch.Err != nil {
			problems = append(problems, fmt.Errorf("change %s: %w", name, patch.Err))
			continue
		}
		object := patch.Info.Object
		if !t.local && !t.print.OutputFlagSpecified() && string(patch.Patch) == "{}" {
			if klog.V(1).Enabled() {
				fmt.Fprintf(t.streams.ErrOut, "info: %s was not changed\n", name)
			}
			continue
		}
		if !t.local && dry != util.DryRunClient {
			var err error
			object, err = resource.NewHelper(patch.Info.Client, patch.Info.Mapping).DryRun(dry == util.DryRunServer).
				Patch(patch.Info.Namespace, patch.Info.Name, types.StrategicMergePatchType, patch.Patch, nil)
			if err != nil {
				problems = append(problems, fmt.Errorf("change %s: %w", name, err))
				continue
			}
		}
		problems = append(problems, done(object))
	}
	return errors.Join(problems...)
}
