package set

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlset "k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newEnv returns kubectl's command, which here supports the environment of BuildConfigs, too.
func newEnv(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	errOut := &envErrors{Writer: streams.ErrOut}
	command := kubectlset.NewCmdEnv(factory, genericiooptions.IOStreams{In: streams.In, Out: &envOutput{streams.Out}, ErrOut: errOut})
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		values, err := command.Flags().GetStringArray("env")
		util.CheckErr(err)
		objects.WarnOfCommas(streams.ErrOut, "--env", values)
		util.CheckErr(checkEnvNames(slices.Concat(args, values)))
		// Only here: `oc set image` and its like would change a container that no BuildConfig has.
		update := polymorphichelpers.UpdatePodSpecForObjectFn
		defer func() { polymorphichelpers.UpdatePodSpecForObjectFn = update }()
		polymorphichelpers.UpdatePodSpecForObjectFn = func(object runtime.Object, change func(*corev1.PodSpec) error) (bool, error) {
			if config, ok := object.(*buildv1.BuildConfig); ok {
				return true, changeBuildEnv(&config.Spec.Strategy, change)
			}
			return update(object, change)
		}
		run(command, args)
		if errOut.failed {
			util.CheckErr(util.ErrExit)
		}
	}
	command.Example += `

  # Set the environment of the builds of a build config
  oc set env bc/web RAILS_ENV=production`
	return command
}

// checkEnvNames returns an error for an argument NAME=VALUE whose name is not a valid variable
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

// envOutput prints the messages of kubectl's command as OpenShift 3 does: "updated" in place of
// "env updated", and titles with the type of the object.
type envOutput struct{ out io.Writer }

// Write writes a line, which kubectl writes in one piece.
func (o *envOutput) Write(text []byte) (int, error) {
	line := string(text)
	if name, rest, ok := strings.Cut(line, " env updated"); ok && !strings.ContainsAny(name, " \n") {
		line = name + " updated" + rest
	}
	var kind, name string
	if count, _ := fmt.Sscanf(line, "# %s %s container", &kind, &name); count == 2 && strings.HasSuffix(name, ",") {
		line = strings.Replace(line, kind+" "+name, strings.ToLower(kind)+"s/"+name, 1)
	}
	_, err := io.WriteString(o.out, line)
	return len(text), err
}

// envErrors notes that a reference could not be resolved, for which kubectl exits with 0.
type envErrors struct {
	io.Writer
	failed bool
}

// Write writes an error.
func (e *envErrors) Write(text []byte) (int, error) {
	e.failed = e.failed || strings.HasPrefix(string(text), "error retrieving reference")
	return e.Writer.Write(text)
}

// Env is `oc env`, the older form of `oc set env`.
func Env(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := newEnv(factory, streams)
	command.Deprecated = "use oc set env"
	return command
}

// changeBuildEnv lets a function that changes containers change the environment of a build
// strategy, as the environment of a container "build".
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
	return nil, errors.New("its strategy, which must be Docker, Source, Custom or JenkinsPipeline, is missing")
}
