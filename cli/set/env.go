package set

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlset "k8s.io/kubectl/pkg/cmd/set"
	kubectlenv "k8s.io/kubectl/pkg/cmd/set/env"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newEnv returns the `oc set env` command. It extends kubectl's command with support for the
// environment variables of BuildConfigs.
func newEnv(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	out := &envOutput{out: streams.Out}
	resourceVersion := ""
	errOut := &envErrors{Writer: streams.ErrOut, out: out}
	command := kubectlset.NewCmdEnv(factory, genericiooptions.IOStreams{In: streams.In, Out: out, ErrOut: errOut})
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		values, err := command.Flags().GetStringArray("env")
		util.CheckErr(err)
		objects.WarnOfCommas(streams.ErrOut, "--env", values)
		util.CheckErr(checkEnvNames(slices.Concat(args, values)))
		util.CheckErr(changesEnv(command.Flags(), args, values))
		if len(values) > 0 { // kubectl's --env flag cannot remove variables
			util.CheckErr(command.Flags().Lookup("env").Value.(pflag.SliceValue).Replace(nil))
			args = append(args, values...)
		}
		files, err := command.Flags().GetStringSlice("filename")
		util.CheckErr(err)
		if resources, _, _ := kubectlenv.SplitEnvironmentFromResources(args); len(files) > 0 && len(resources) == 0 && prints(command.Flags()) {
			// With --local, the objects need not exist on the server.
			util.CheckErr(command.Flags().Set("local", "true"))
		}
		changed, skipped := 0, 0
		// Replace kubectl's function with a function that also supports BuildConfigs. Restore it
		// when this command ends, because `oc set image`, which also uses it, does not support
		// BuildConfigs.
		update := polymorphichelpers.UpdatePodSpecForObjectFn
		defer func() { polymorphichelpers.UpdatePodSpecForObjectFn = update }()
		polymorphichelpers.UpdatePodSpecForObjectFn = func(object runtime.Object, change func(*corev1.PodSpec) error) (bool, error) {
			if err := expectVersion(object, &resourceVersion); err != nil {
				return true, err
			}
			if config, ok := object.(*buildv1.BuildConfig); ok {
				changed++
				return true, changeBuildEnv(&config.Spec.Strategy, change)
			}
			handled, err := update(object, change)
			// Skip an application's other objects, such as services, because they have no
			// variables.
			if !handled && len(files) > 0 {
				skipped++
				return true, nil
			}
			changed++
			return handled, err
		}
		run(command, args)
		if changed == 0 && skipped > 0 {
			util.CheckErr(errors.New("no object in the files has a pod template"))
		}
		for _, name := range errOut.failed {
			fmt.Fprintf(streams.ErrOut, "error: %s failed to retrieve valueFrom references\n", name)
		}
		if len(errOut.failed) > 0 {
			util.CheckErr(util.ErrExit)
		}
	}
	command.Flags().StringVar(&resourceVersion, "resource-version", "", "Change the object only if it has this resource version. Only for a single object.")
	command.Example += `

  # Set the environment of the builds of a build config
  oc set env bc/web RAILS_ENV=production`
	return command
}

// used replaces the value of --resource-version after the first call of expectVersion, because the
// flag applies to a single object.
const used = "used"

// expectVersion sets an object's resource version to the value of --resource-version, unless the
// value is empty. As a result, the server rejects the change if the object has a different resource
// version.
func expectVersion(object runtime.Object, version *string) error {
	if *version == "" {
		return nil
	}
	if *version == used {
		return errors.New("--resource-version may only be used with a single resource")
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(*version)
	*version = used
	return nil
}

// changesEnv returns an error if the arguments and flags neither set, remove nor list environment
// variables.
func changesEnv(flags *pflag.FlagSet, args, values []string) error {
	_, variables, ok := kubectlenv.SplitEnvironmentFromResources(args)
	if flags.Changed("list") || flags.Changed("from") || !ok || len(variables)+len(values) > 0 {
		return nil
	}
	return errors.New("at least one environment variable must be provided")
}

// checkEnvNames returns an error if a NAME=VALUE argument contains an invalid environment variable
// name.
func checkEnvNames(args []string) error {
	for _, arg := range args {
		name, _, isPair := strings.Cut(arg, "=")
		if !isPair {
			continue
		}
		if problems := validation.IsEnvVarName(name); len(problems) > 0 {
			return fmt.Errorf("environment variable %s is invalid, %s", arg, strings.Join(problems, ", "))
		}
	}
	return nil
}

// envOutput replaces the messages of kubectl's command with OpenShift 3's messages. They contain
// "updated" instead of "env updated", and the headings contain the object's resource.
type envOutput struct {
	out io.Writer
	// object is the object in the most recent heading, such as deploymentconfigs/web.
	object string
}

// Write rewrites a line. It requires that each call writes one complete line, as kubectl does.
func (o *envOutput) Write(text []byte) (int, error) {
	line := string(text)
	if name, rest, ok := strings.Cut(line, " env updated"); ok && !strings.ContainsAny(name, " \n") {
		line = name + " updated" + rest
	}
	var kind, name string
	if count, _ := fmt.Sscanf(line, "# %s %s container", &kind, &name); count == 2 && strings.HasSuffix(name, ",") {
		title := strings.ToLower(kind) + "s/" + name
		line = strings.Replace(line, kind+" "+name, title, 1)
		o.object = strings.TrimSuffix(title, ",")
	}
	_, err := io.WriteString(o.out, line)
	return len(text), err
}

// envErrors records the objects for which kubectl could not resolve a reference, because kubectl
// exits with status 0 in this case.
type envErrors struct {
	io.Writer
	out    *envOutput
	failed []string
}

// Write writes an error message and records the object in the message.
func (e *envErrors) Write(text []byte) (int, error) {
	if strings.HasPrefix(string(text), "error retrieving reference") && !slices.Contains(e.failed, e.out.object) {
		e.failed = append(e.failed, e.out.object)
	}
	return e.Writer.Write(text)
}

// Env returns the `oc env` command, the deprecated form of `oc set env`.
func Env(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := newEnv(factory, streams)
	command.Deprecated = "use oc set env"
	return command
}

// changeBuildEnv changes a build strategy's environment variables. It calls change, which changes
// containers, with a pod spec in which a container named build has these variables.
func changeBuildEnv(strategy *buildv1.BuildStrategy, change func(*corev1.PodSpec) error) error {
	env, err := buildEnv(strategy)
	if err != nil {
		return err
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "build", Env: *env}}}
	if err := change(spec); err != nil {
		return err
	}
	*env = spec.Containers[0].Env
	return nil
}

func buildEnv(strategy *buildv1.BuildStrategy) (*[]corev1.EnvVar, error) {
	switch {
	case strategy.DockerStrategy != nil:
		return &strategy.DockerStrategy.Env, nil
	case strategy.SourceStrategy != nil:
		return &strategy.SourceStrategy.Env, nil
	case strategy.CustomStrategy != nil:
		return &strategy.CustomStrategy.Env, nil
	case strategy.JenkinsPipelineStrategy != nil:
		return &strategy.JenkinsPipelineStrategy.Env, nil
	}
	return nil, errors.New("it has no strategy; set one of Docker, Source, Custom and JenkinsPipeline")
}
