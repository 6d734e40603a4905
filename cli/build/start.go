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

// buildStart starts a build.
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

// NewStart returns `oc start-build`.
func NewStart(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &buildStart{streams: streams, print: genericclioptions.NewPrintFlags("started").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "start-build (BUILDCONFIG | --from-build=BUILD)",
		Short: "Start a new build",
		Long: `Start a build of a build config, or one like an earlier build.

What is built is what the build config says, unless --from-dir, --from-file, --from-repo or --from-archive sends
something that lies here.`,
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
	flags.StringVar(&s.source.File, "from-file", "", "A file, or its address, that is the source; in the build it has the same name")
	flags.StringVar(&s.source.Dir, "from-dir", "", "A directory that is the source")
	flags.StringVar(&s.source.Repo, "from-repo", "", "A local Git repository that is the source")
	flags.StringVar(&s.source.Archive, "from-archive", "", "An archive (tar, tar.gz, zip), or its address, that is the source")
	flags.StringVar(&s.source.Commit, "commit", "", "The commit to build: of the build config's repository, or of --from-repo; with another source, the commit that it is noted to be")
	flags.StringVar(&s.exclude, "exclude", `(^|/)\.git(/|$)`, "Regular expression of the paths of --from-dir that are left out; empty leaves out none")
	flags.StringVar(&s.fromBuild, "from-build", "", "An earlier build to do again")
	flags.StringArrayVarP(&s.env, "env", "e", nil, "A variable of the build, as NAME=value; may be given several times")
	flags.StringArrayVar(&s.args, "build-arg", nil, "An argument of the Dockerfile, as NAME=value; may be given several times")
	flags.BoolVarP(&s.follow, "follow", "F", false, "Show the log of the build while it runs")
	flags.BoolVarP(&s.wait, "wait", "w", false, "Wait for the end of the build, and fail if it does")
	flags.BoolVar(&s.incremental, "incremental", false, "Build on what the last build has left, with Source-to-Image")
	flags.BoolVar(&s.noCache, "no-cache", false, "Build each step of the Dockerfile anew")
	flags.StringVar(&s.level, "build-loglevel", "", "How much the build says, 0 to 5")
	flags.StringVar(&s.hook.URL, "from-webhook", "", "A generic web hook to call instead")
	flags.StringVar(&s.hook.PostReceive, "git-post-receive", "", "With --from-webhook, a file with what git gives its hook post-receive, - for standard input")
	flags.StringVar(&s.hook.Repository, "git-repository", "", "With --git-post-receive, the repository, for the description of its commit; by default the current directory")
	flags.StringVar(&s.hooks, "list-webhooks", "", "List the web hooks of the build config: all, generic, github, gitlab or bitbucket")
	s.print.AddFlags(command)
	return command
}

// builds connects to the builds of the current project.
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
		return s.hook.Call(ctx, s.streams.In)
	}
	kind, name := OfBuild, s.fromBuild
	switch {
	case name != "" && len(args) > 0:
		return util.UsageErrorf(command, "name a build config or --from-build, not both")
	case name == "" && len(args) == 0:
		return util.UsageErrorf(command, "name a build config or --from-build")
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
	printer, err := s.print.ToPrinter()
	if err != nil {
		return err
	}
	if err := printer.PrintObj(started, s.streams.Out); err != nil {
		return err
	}
	return s.attend(ctx, started.Name)
}

// attend stays with the build as far as the flags say.
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

// start makes the build in the way that the flags say.
func (s *buildStart) start(ctx context.Context, command *cobra.Command, kind, name string) (*buildv1.Build, error) {
	request, err := s.request(command, name)
	switch {
	case err != nil:
		return nil, err
	case s.source.Given() && kind == OfBuild:
		return nil, util.UsageErrorf(command, "an earlier build has its source; name a build config to send another one")
	case s.source.Given():
		if err := checkBinary(command); err != nil {
			return nil, err
		}
		s.source.In, s.source.Progress = s.streams.In, s.streams.ErrOut
		if s.exclude != "" {
			if s.source.Exclude, err = regexp.Compile(s.exclude); err != nil {
				return nil, fmt.Errorf("read --exclude: %w", err)
			}
		}
		return s.client.Upload(ctx, name, &s.source)
	case kind == OfBuild:
		return s.client.Again(ctx, request)
	}
	return s.client.BuildConfigs(s.client.Namespace).Instantiate(ctx, name, request, metav1.CreateOptions{})
}

// checkBinary refuses the flags that the request for a build with its source has no fields for
// (buildv1.BinaryBuildRequestOptions). OpenShift 3.11 warned of some and was silent about others.
func checkBinary(command *cobra.Command) error {
	var given []string
	for _, name := range []string{"env", "build-arg", "no-cache", "incremental", "build-loglevel"} {
		if command.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return util.UsageErrorf(command, "a build whose source is sent does not take %s; set that in the build config, whose environment oc set env changes (BUILD_LOGLEVEL for --build-loglevel)",
		strings.Join(given, ", "))
}

// request is what the flags ask for.
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
	given := command.Flags().Changed
	if len(s.args) > 0 || given("no-cache") {
		options := &buildv1.DockerStrategyOptions{}
		if options.BuildArgs, err = Variables(s.args); err != nil {
			return nil, err
		}
		if given("no-cache") {
			options.NoCache = &s.noCache
		}
		request.DockerStrategyOptions = options
	}
	if given("incremental") {
		request.SourceStrategyOptions = &buildv1.SourceStrategyOptions{Incremental: &s.incremental}
	}
	return request, nil
}

// Variables reads NAME=value.
func Variables(given []string) (env []corev1.EnvVar, err error) {
	for _, text := range given {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is no variable; give it as NAME=value", text)
		}
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	return env, nil
}
