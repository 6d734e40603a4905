package set

import (
	"errors"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// errNoBuild is the error for an object that is not a BuildConfig.
var errNoBuild = errors.New("only build configs support this")

// buildSecret holds the state of `oc set build-secret`.
type buildSecret struct {
	push, pull, source, remove bool
	name                       string
}

func newBuildSecret(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, s := newTargets(factory, streams, "secret updated"), &buildSecret{}
	command := &cobra.Command{
		Use:   "build-secret bc/NAME (SECRET | --remove) (--push | --pull | --source)",
		Short: "Update a build secret on a build config",
		Example: `  oc set build-secret --push bc/web registry-login
  oc set build-secret --source bc/web clone-key
  oc set build-secret --pull --remove bc/web`,
		Run: func(command *cobra.Command, args []string) {
			args, err := s.read(args)
			util.CheckErr(err)
			util.CheckErr(t.apply(command, ofResource("buildconfigs", args), s.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&s.push, "push", false, "Set the secret for the output registry.")
	flags.BoolVar(&s.pull, "pull", false, "Set the secret for the registry with the builder or base image.")
	flags.BoolVar(&s.source, "source", false, "Set the secret for the source repository.")
	flags.BoolVar(&s.remove, "remove", false, "Remove the secret from the build config.")
	return command
}

// read sets the secret's name to the last argument, and returns the other arguments.
func (s *buildSecret) read(args []string) ([]string, error) {
	unnamed := len(args) == 0 || strings.HasPrefix(args[len(args)-1], "bc/")
	switch {
	case unnamed && !s.remove:
		return nil, errors.New("a secret name must be specified, or --remove")
	case !s.push && !s.pull && !s.source:
		return nil, errors.New("specify the secret type: --push, --pull or --source")
	case s.remove:
		return args, nil
	}
	s.name = strings.TrimPrefix(args[len(args)-1], "secret/")
	return args[:len(args)-1], nil
}

func (s *buildSecret) change(object runtime.Object) error {
	config, ok := object.(*buildv1.BuildConfig)
	if !ok {
		return errNoBuild
	}
	var secret *corev1.LocalObjectReference
	if !s.remove {
		secret = &corev1.LocalObjectReference{Name: s.name}
	}
	if s.push {
		config.Spec.Output.PushSecret = secret
	}
	if s.source {
		config.Spec.Source.SourceSecret = secret
	}
	if !s.pull {
		return nil
	}
	switch strategy := &config.Spec.Strategy; {
	case strategy.DockerStrategy != nil:
		strategy.DockerStrategy.PullSecret = secret
	case strategy.SourceStrategy != nil:
		strategy.SourceStrategy.PullSecret = secret
	case strategy.CustomStrategy != nil:
		strategy.CustomStrategy.PullSecret = secret
	default:
		return errors.New("its strategy does not pull an image")
	}
	return nil
}

// buildHook holds the state of `oc set build-hook`.
type buildHook struct {
	postCommit, command, remove bool
	script                      string
	words                       []string
}

func newBuildHook(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, h := newTargets(factory, streams, "hooks updated"), &buildHook{}
	command := &cobra.Command{
		Use:   "build-hook bc/NAME --post-commit (--script=TEXT | [--command] -- ARGS... | --remove)",
		Short: "Update a build hook on a build config",
		Long: `Set or remove the command that runs in a container of the new image before the push. If it fails, the build fails.

A script runs in a shell of the image. With --command, the arguments after -- are a command. Otherwise, they are arguments of the image's entrypoint.`,
		Example: `  oc set build-hook bc/web --post-commit --script="bundle exec rake test"
  oc set build-hook bc/web --post-commit --command -- rake test --verbose
  oc set build-hook bc/web --post-commit --remove`,
		Run: func(command *cobra.Command, args []string) {
			if at := command.ArgsLenAtDash(); at >= 0 {
				args, h.words = args[:at], args[at:]
			}
			t.noun = "build configs"
			util.CheckErr(t.check(args))
			util.CheckErr(h.validate())
			if len(args) == 0 && (t.all || t.selector != "") {
				args = []string{"buildconfigs"}
			}
			util.CheckErr(t.apply(command, ofResource("buildconfigs", args), h.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&h.postCommit, "post-commit", false, "The hook that runs after the build and before the push.")
	flags.BoolVar(&h.command, "command", false, "The arguments after -- replace the image's entrypoint.")
	flags.StringVar(&h.script, "script", "", "A script for a shell of the image.")
	flags.BoolVar(&h.remove, "remove", false, "Remove the hook.")
	return command
}

func (h *buildHook) validate() error {
	switch {
	case !h.postCommit:
		return errors.New("you must specify a type of hook to set, such as --post-commit")
	case h.remove && (h.script != "" || h.command || len(h.words) > 0):
		return errors.New("use --remove without other flags")
	case !h.remove && h.script == "" && len(h.words) == 0:
		return errors.New("you must specify either a script or command for the build hook")
	case h.script != "" && h.command:
		return errors.New("use only one of --script and --command")
	}
	return nil
}

func (h *buildHook) change(object runtime.Object) error {
	config, ok := object.(*buildv1.BuildConfig)
	if !ok {
		return errNoBuild
	}
	hook := buildv1.BuildPostCommitSpec{Script: h.script, Args: h.words}
	if h.command {
		hook.Command, hook.Args = h.words, nil
	}
	config.Spec.PostCommit = hook
	return nil
}
