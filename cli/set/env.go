package set

import (
	"errors"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlset "k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// newEnv is kubectl's command, which here knows the environment of BuildConfigs too.
func newEnv(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlset.NewCmdEnv(factory, streams)
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
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
	}
	command.Example += `

  # Set the environment of the builds of a build config
  oc set env bc/web RAILS_ENV=production`
	return command
}

// Env is `oc env`, the older form of `oc set env`.
func Env(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := newEnv(factory, streams)
	command.Deprecated = "use oc set env"
	return command
}

// changeBuildEnv lets a function that changes the containers of pods change the environment of a
// strategy, as that of a container "build".
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
