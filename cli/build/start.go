package build

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// buildStart holds the state of `oc start-build`.
type buildStart struct {
	client  *Client
	streams genericiooptions.IOStreams
	print   *genericclioptions.PrintFlags

	source                             Source
	hook                               Hook
	env, args                          []string
	fromBuild, exclude, level, hooks   string
	follow, wait, incremental, noCache bool
}

// NewStart returns the `oc start-build` command.
func NewStart(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &buildStart{streams: streams, print: genericclioptions.NewPrintFlags("started").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "start-build (BUILDCONFIG | --from-build=BUILD)",
		Short: "Start a new build",
		Long: `Start a build of a build config, or repeat an earlier build.

The build uses the source of the build config, unless --from-dir, --from-file, --from-repo or --from-archive sends
a local one.`,
		Example: `  oc start-build hello-world
  oc start-build --from-build=hello-world-1
  oc start-build hello-world --from-dir=. --follow --wait
  git archive HEAD | oc start-build hello-world --from-archive=-`,
		Args: cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			var err error
			s.client, err = builds(factory)
			util.CheckErr(err)
			s.hook.Server, err = factory.ToRESTConfig()
			util.CheckErr(err)
			util.CheckErr(s.run(command, args))
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.source.File, "from-file", "", "File or URL to use as the source. The file has the same name in the build")
	flags.StringVar(&s.source.Dir, "from-dir", "", "Directory to use as the source")
	flags.StringVar(&s.source.Repo, "from-repo", "", "Local Git repository to use as the source")
	flags.StringVar(&s.source.Archive, "from-archive", "", "Archive (tar, tar.gz, zip) or URL to use as the source")
	flags.StringVar(&s.source.Commit, "commit", "", "Commit to build, from the build config's repository or from --from-repo. For any other source, the commit to record")
	flags.StringVar(&s.exclude, "exclude", `(^|/)\.git(/|$)`, "Regular expression that matches paths in --from-dir to omit. If empty, no paths are omitted")
	flags.StringVar(&s.fromBuild, "from-build", "", "Earlier build to repeat")
	flags.StringArrayVarP(&s.env, "env", "e", nil, "Environment variable for the build, as NAME=value. Can be repeated")
	flags.StringArrayVar(&s.args, "build-arg", nil, "Dockerfile build argument, as NAME=value. Can be repeated")
	flags.BoolVarP(&s.follow, "follow", "F", false, "Print the log of the build while it runs")
	flags.BoolVarP(&s.wait, "wait", "w", false, "Wait until the build ends, and fail if the build fails")
	flags.BoolVar(&s.incremental, "incremental", false, "Reuse artifacts of the previous Source-to-Image build")
	flags.BoolVar(&s.noCache, "no-cache", false, "Build each step of the Dockerfile without the cache")
	flags.StringVar(&s.level, "build-loglevel", "", "Log level of the build, 0 to 5")
	flags.StringVar(&s.hook.URL, "from-webhook", "", "URL of a generic webhook that starts the build")
	flags.StringVar(&s.hook.PostReceive, "git-post-receive", "", "With --from-webhook: file with the input of the post-receive hook, or - for standard input")
	flags.StringVar(&s.hook.Repository, "git-repository", "", "With --git-post-receive: repository that contains the commit. The default is the current directory")
	flags.StringVar(&s.hooks, "list-webhooks", "", "List the webhooks of the build config: all, generic, github, gitlab or bitbucket")
	s.print.AddFlags(command)
	return command
}

// builds returns a client for builds in the current project.
func builds(factory util.Factory) (*Client, error) {
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return New(config, namespace)
}

func (s *buildStart) run(command *cobra.Command, args []string) error {
	ctx := command.Context()
	if s.hook.URL != "" {
		var err error
		if s.hook.Env, err = Variables(s.env); err != nil {
			return err
		}
		build, err := s.hook.Call(ctx, s.streams.In)
		if err != nil || build == nil {
			return err
		}
		return s.report(build)
	}
	kind, name := OfBuild, s.fromBuild
	switch {
	case name != "" && s.source.IsSet():
		return util.UsageErrorf(command, "Cannot use '--from-build' flag with binary builds")
	case name != "" && len(args) > 0:
		return util.UsageErrorf(command, "specify either a build config or --from-build, not both")
	case name == "" && len(args) == 0:
		return util.UsageErrorf(command, "specify a build config or --from-build")
	case name == "":
		var err error
		if kind, name, err = Name(args[0], OfConfig); err != nil {
			return err
		}
	}
	if s.hooks != "" {
		return s.client.ListHooks(ctx, name, s.hooks, s.streams.Out)
	}
	started, err := s.start(ctx, command, kind, name)
	if err != nil {
		return err
	}
	if err := s.report(started); err != nil {
		return err
	}
	return s.attend(ctx, started.Name)
}

// report prints the started build in the format that -o requests.
func (s *buildStart) report(build *buildv1.Build) error {
	printer, err := s.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(build, s.streams.Out)
}

// attend prints the build's log if --follow is set, and waits until the build finishes if --wait is
// set.
func (s *buildStart) attend(ctx context.Context, name string) (err error) {
	switch {
	case s.follow:
		err = s.client.Follow(ctx, name, s.streams.Out, s.streams.ErrOut)
		if err != nil && s.wait {
			fmt.Fprintf(s.streams.ErrOut, "error getting logs (%v), waiting for build to complete\n", err)
			err = nil
		}
	case s.wait:
		err = s.client.Begin(ctx, name, s.streams.ErrOut)
	}
	if err != nil || !s.wait {
		return err
	}
	return s.client.Complete(ctx, name)
}

// start starts a build from the build config with the given name. If kind is OfBuild, name
// identifies a build, and start repeats that build.
func (s *buildStart) start(ctx context.Context, command *cobra.Command, kind, name string) (*buildv1.Build, error) {
	request, err := s.request(command, name)
	switch {
	case err != nil:
		return nil, err
	case s.source.IsSet():
		if err := checkBinary(command); err != nil {
			return nil, err
		}
		s.source.In, s.source.Progress = s.streams.In, s.streams.ErrOut
		if s.exclude != "" {
			if s.source.Exclude, err = regexp.Compile(s.exclude); err != nil {
				return nil, fmt.Errorf("parse --exclude: %w", err)
			}
		}
		return s.client.Upload(ctx, name, &s.source)
	case kind == OfBuild:
		return s.client.Again(ctx, request)
	}
	return s.client.BuildConfigs(s.client.Namespace).Instantiate(ctx, name, request, metav1.CreateOptions{})
}

// checkBinary returns an error for flags that do not apply to builds with uploaded source, because
// buildv1.BinaryBuildRequestOptions has no fields for them. OpenShift 3.11 warned about some of
// these flags and ignored the others.
func checkBinary(command *cobra.Command) error {
	var flags []string
	for _, name := range []string{"env", "build-arg", "no-cache", "incremental", "build-loglevel"} {
		if command.Flags().Changed(name) {
			flags = append(flags, "--"+name)
		}
	}
	if len(flags) == 0 {
		return nil
	}
	return util.UsageErrorf(command, "a build with a local source does not support %s; change the build config instead, for example with oc set env (BUILD_LOGLEVEL for --build-loglevel)",
		strings.Join(flags, ", "))
}

// request returns the build request that the flags specify.
func (s *buildStart) request(command *cobra.Command, name string) (*buildv1.BuildRequest, error) {
	request := &buildv1.BuildRequest{TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Manually triggered"}}}
	request.Name = name
	var err error
	if request.Env, err = Variables(s.env); err != nil {
		return nil, err
	}
	if s.level != "" {
		request.Env = append(request.Env, corev1.EnvVar{Name: "BUILD_LOGLEVEL", Value: s.level})
	}
	if s.source.Commit != "" {
		request.Revision = &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{Commit: s.source.Commit}}
	}
	changed := command.Flags().Changed
	if len(s.args) > 0 || changed("no-cache") {
		options := &buildv1.DockerStrategyOptions{}
		if options.BuildArgs, err = Variables(s.args); err != nil {
			return nil, err
		}
		if changed("no-cache") {
			options.NoCache = &s.noCache
		}
		request.DockerStrategyOptions = options
	}
	if changed("incremental") {
		request.SourceStrategyOptions = &buildv1.SourceStrategyOptions{Incremental: &s.incremental}
	}
	return request, nil
}

// Variables parses environment variables in the form NAME=value.
func Variables(args []string) (env []corev1.EnvVar, err error) {
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not a variable; use NAME=value", arg)
		}
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	return env, nil
}
