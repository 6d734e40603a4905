// Package app contains the commands `oc new-app` and `oc new-build`. It creates the objects that
// package newapp plans, and prints the next steps.
package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/app/newapp"
	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/cli/template"
)

// newApp holds the state of `oc new-app`.
type newApp struct {
	genericiooptions.IOStreams
	factory util.Factory
	print   *genericclioptions.PrintFlags
	request newapp.Request

	images, streams, templates, files, code, groups   []string
	env, envFiles, buildEnv, buildEnvFiles            []string
	params, paramFiles                                []string
	labels                                            string
	ignoreUnknown, missing, insecure, dryRun, install bool
	missingTags                                       bool
	list, search                                      bool
}

// New returns the `oc new-app` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &newApp{
		IOStreams: streams, factory: factory, request: newapp.Request{By: "OpenShiftNewApp"},
		print: genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme),
	}
	command := &cobra.Command{
		Use:   "new-app (IMAGE | IMAGESTREAM | TEMPLATE | PATH | URL ...)",
		Short: "Create a new application",
		Long: `Create a new application from images, templates and source code.

Each argument is the name of an image stream or template in the project or the project openshift, an image in a registry, a Git
repository, or a directory. Source is built with the image before a ~, or with a builder image for its language. A Dockerfile needs no
builder image. Images that are joined by + run in one pod.`,
		Example: `  # List image streams and templates
  oc new-app --list

  # Deploy an image
  oc new-app mysql MYSQL_USER=user MYSQL_PASSWORD=pass MYSQL_DATABASE=testdb -l db=mysql

  # Build source with the builder image ruby
  oc new-app ruby~https://example.com/hello-world.git

  # Process a template file
  oc new-app -f ./template.yaml -p NAME=value

  # Print the objects without creating them
  oc new-app mysql -o yaml --dry-run`,
		Run: func(command *cobra.Command, args []string) {
			err := o.run(command.Context(), args)
			var unknown *newapp.NotFound
			if errors.As(err, &unknown) {
				err = fmt.Errorf("%w\n\n%s", err, matchHelp)
			}
			util.CheckErr(err)
		},
	}
	o.addFlags(command)
	return command
}

// matchHelp is the text that OpenShift 3's client prints if an argument has no match.
const matchHelp = `The 'oc new-app' command will match arguments to the following types:

  1. Images tagged into image streams in the current project or the 'openshift' project
     - if you don't specify a tag, we'll add ':latest'
  2. Images in remote registries
  3. Templates in the current project or the 'openshift' project
  4. Git repository URLs or local paths that point to Git repositories

--allow-missing-images can be used to point to an image that does not exist yet.

See 'oc new-app -h' for examples.`

func (o *newApp) addFlags(command *cobra.Command) {
	o.print.TemplatePrinterFlags = nil // --template is the name of a template here
	o.print.AddFlags(command)
	o.print.TemplatePrinterFlags = genericclioptions.NewKubeTemplatePrintFlags()
	objects.AddOldPrintFlags(command)
	flags := command.Flags()
	flags.BoolVar(o.print.TemplatePrinterFlags.AllowMissingKeys, "allow-missing-template-keys", false, "Ignore missing keys in the jsonpath expressions and templates of -o.")
	flags.StringSliceVar(&o.images, "docker-image", nil, "Image in a registry.")
	addImageAlias(flags)
	flags.StringSliceVarP(&o.streams, "image-stream", "i", nil, "Image stream, with or without a tag.")
	flags.StringSliceVar(&o.templates, "template", nil, "Template in the project or the project openshift.")
	flags.StringSliceVarP(&o.files, "file", "f", nil, "File or URL of a template.")
	flags.StringSliceVar(&o.code, "code", nil, "Source: a Git URL or a directory.")
	flags.StringSliceVar(&o.groups, "group", nil, "Components that run in one pod, joined by +.")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "Environment variable for the containers, as KEY=VALUE.")
	flags.StringArrayVar(&o.envFiles, "env-file", nil, "File with container environment variables, or - for standard input.")
	flags.StringArrayVar(&o.buildEnv, "build-env", nil, "Build environment variable, as KEY=VALUE.")
	flags.StringArrayVar(&o.buildEnvFiles, "build-env-file", nil, "File with build environment variables.")
	flags.StringArrayVarP(&o.params, "param", "p", nil, "Value of a template's parameter, as KEY=VALUE.")
	flags.StringArrayVar(&o.paramFiles, "param-file", nil, "File with parameter values.")
	flags.BoolVar(&o.ignoreUnknown, "ignore-unknown-parameters", false, "Ignore values that are not parameters of the template.")
	flags.StringVarP(&o.labels, "labels", "l", "", "Labels for all objects, as KEY=VALUE,KEY=VALUE.")
	flags.StringVar(&o.request.Name, "name", "", "Name of the application. By default, the name of the source or image.")
	flags.StringVar(&o.request.Strategy, "strategy", "", "Strategy to build source: docker, source or pipeline.")
	flags.StringVar(&o.request.Options.SourceSecret, "source-secret", "", "Secret for the source repository.")
	flags.StringVar(&o.request.ContextDir, "context-dir", "", "Directory of the source within its repository.")
	flags.BoolVar(&o.request.AsTest, "as-test", false, "Create test deployments, which have pods only during a deployment.")
	flags.BoolVar(&o.missing, "allow-missing-images", false, "Accept images that do not exist yet.")
	flags.BoolVar(&o.missingTags, "allow-missing-imagestream-tags", false, "Accept tags of image streams that have no image yet.")
	flags.BoolVar(&o.insecure, "insecure-registry", false, "Accept registries whose certificate cannot be verified.")
	flags.BoolVarP(&o.list, "list", "L", false, "List image streams and templates.")
	flags.BoolVarP(&o.search, "search", "S", false, "Search for images and templates that match the arguments.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Print the objects without creating them.")
	flags.BoolVar(&o.install, "grant-install-rights", false, "Rejected. In OpenShift 3, it gave your token to an image that installs itself.")
	flags.Bool("no-install", false, "Accepted for OpenShift 3, whose client ran images that install themselves. It has no effect.")
}

// addImageAlias adds --image, the name of --docker-image in later versions of OpenShift's client.
func addImageAlias(flags *pflag.FlagSet) {
	alias := *flags.Lookup("docker-image")
	alias.Name, alias.Hidden = "image", true
	flags.AddFlag(&alias)
}

func (o *newApp) run(ctx context.Context, args []string) error {
	if o.install {
		return errors.New("--grant-install-rights is not supported, because it would give all of your permissions to an image; " +
			"run the image in a pod, with a service account that has only the permissions that it needs")
	}
	finder, err := o.finder()
	if err != nil {
		return err
	}
	if o.list || o.search {
		return o.show(ctx, finder, args)
	}
	if err := o.read(args); err != nil {
		return err
	}
	plan, err := o.plan(ctx, finder)
	if err != nil {
		return err
	}
	if len(plan.Templates)+len(o.files) > 0 && o.request.ContextDir != "" {
		return errors.New("--context-dir is not supported when using a template")
	}
	for _, file := range o.files {
		local, err := template.ReadTemplate(o.factory, file)
		if err != nil {
			return fmt.Errorf("unable to load template file %q: error parsing %[1]s: %w", file, err)
		}
		plan.Templates = append(plan.Templates, local)
	}
	objects, err := o.fill(ctx, finder, plan)
	if err != nil {
		return err
	}
	if len(plan.Templates) > 0 && !o.dryRun {
		if err := finder.CheckImages(ctx, objects); err != nil {
			return err
		}
	}
	return o.create(ctx, plan, objects)
}

// plan resolves the request. As in OpenShift 3.11, if Git cannot clone a URL, plan tries to read a
// template from the URL.
func (o *newApp) plan(ctx context.Context, finder *newapp.Finder) (*newapp.Plan, error) {
	for {
		plan, err := newapp.New(ctx, finder, o.request)
		var unread *newapp.CloneError
		if !errors.As(err, &unread) {
			return plan, err
		}
		if _, problem := template.ReadTemplate(o.factory, unread.URL); problem != nil {
			return nil, o.classified(err, unread.URL, problem)
		}
		if o.request.BuildOnly {
			return nil, fmt.Errorf("%s is a template; use oc new-app", unread.URL)
		}
		count := len(o.request.Components)
		o.request.Components = slices.DeleteFunc(o.request.Components, func(c newapp.Component) bool { return c.From == "" && c.Source == unread.URL })
		// If the URL is not a component of its own, it is the value of --code or a builder's
		// source. A template can replace neither.
		if len(o.request.Components) == count {
			return nil, fmt.Errorf("%s is a template: use oc new-app -f %[1]s", unread.URL)
		}
		o.files = append(o.files, unread.URL)
	}
}

// classified returns the error for a URL that is neither a Git repository nor a template. Like
// OpenShift 3's client, it explains how the argument was interpreted.
func (o *newApp) classified(err error, url string, problem error) error {
	err = fmt.Errorf("%w\nerror: unable to load template file %q: %w\nerror: %w", &newapp.NotFound{Name: url}, url, problem, err)
	if o.request.Strategy != "" {
		err = fmt.Errorf("none of the arguments provided could be classified as a source code location\nerror: %w", err)
	}
	return fmt.Errorf("%w\n\nArgument '%s' was classified as an image, image~source, or loaded template reference.", err, url)
}

func (o *newApp) finder() (*newapp.Finder, error) {
	config, err := o.factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	templates, err := templateclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &newapp.Finder{
		Images: images, Templates: templates, Namespace: namespace, Insecure: o.insecure, AllowMissing: o.missing, AllowMissingTags: o.missingTags,
	}, nil
}

// read builds the request from arguments and flags.
func (o *newApp) read(args []string) (err error) {
	if !slices.Contains([]string{"", newapp.DockerStrategy, newapp.SourceStrategy, newapp.PipelineStrategy}, o.request.Strategy) {
		return fmt.Errorf("parse --strategy %q: must be docker, source or pipeline", o.request.Strategy)
	}
	components, variables, err := newapp.Arguments(append(slices.Clone(args), o.groups...))
	if err != nil {
		return err
	}
	components = slices.DeleteFunc(components, func(c newapp.Component) bool {
		if c.Kind == newapp.FileKind {
			o.files = append(o.files, c.From)
		}
		return c.Kind == newapp.FileKind
	})
	kinds := []newapp.Kind{newapp.ImageKind, newapp.StreamKind, newapp.TemplateKind}
	for i, names := range [][]string{o.images, o.streams, o.templates} {
		for _, name := range names {
			name, source, _ := strings.Cut(name, "~")
			components = append(components, newapp.Component{From: name, Source: source, Kind: kinds[i], Group: 1 + len(args) + len(o.groups) + len(components)})
		}
	}
	if len(components)+len(o.code)+len(o.files) == 0 && !o.request.BuildOnly {
		return errors.New("you must specify one or more images, image streams, templates, or source code locations to create an application.\n\n" +
			"To list all local templates and image streams, use:\n\n  oc new-app -L\n\nTo search templates, image streams, and Docker images that match the arguments provided, use:\n\n" +
			"  oc new-app -S php\n  oc new-app -S --template=rails\n  oc new-app -S --image-stream=mysql\n  oc new-app -S --docker-image=python")
	}
	if err := o.checkSecrets(); err != nil {
		return err
	}
	objects.WarnOfCommas(o.ErrOut, "--env", o.env)
	objects.WarnOfCommas(o.ErrOut, "--build-env", o.buildEnv)
	objects.WarnOfCommas(o.ErrOut, "--param", o.params)
	o.request.Components, o.request.Sources = components, o.code
	if o.request.BuildOnly { // oc new-build treats --env like --build-env
		o.buildEnv, o.buildEnvFiles = slices.Concat(o.env, o.buildEnv), slices.Concat(o.envFiles, o.buildEnvFiles)
		o.env, o.envFiles = nil, nil
	}
	if o.request.Environment, err = o.variables(append(variables, o.env...), o.envFiles); err != nil {
		return err
	}
	if o.request.BuildEnvironment, err = o.variables(o.buildEnv, o.buildEnvFiles); err != nil {
		return err
	}
	if o.request.Labels, err = labels.ConvertSelectorToLabelsMap(o.labels); err != nil {
		return fmt.Errorf("parse --labels: %w", err)
	}
	return nil
}

// variables returns the environment variables in pairs and files, sorted by name.
func (o *newApp) variables(pairs, files []string) (all []corev1.EnvVar, err error) {
	values, err := template.Values("environment variable", pairs, files, o.In, o.ErrOut)
	for name, value := range values {
		all = append(all, corev1.EnvVar{Name: name, Value: value})
	}
	slices.SortFunc(all, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
