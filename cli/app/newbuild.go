package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/app/newapp"
	"github.com/slipway-platform/slipway/cli/build"
)

// newBuild is `oc new-build`: that part of new-app which makes builds.
type newBuild struct {
	newApp
	to                          string
	toImage                     bool
	secrets, configs, arguments []string
	sourcePath                  string
}

// NewBuild returns `oc new-build`.
func NewBuild(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &newBuild{newApp: newApp{
		IOStreams: streams, factory: factory, request: newapp.Request{By: "OpenShiftNewBuild", BuildOnly: true},
		print: genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme),
	}}
	command := &cobra.Command{
		Use:   "new-build (IMAGE | IMAGESTREAM | PATH | URL ...)",
		Short: "Create a new build configuration",
		Long: `Create a build configuration from source code, and start it.

Source is a Git repository or a directory. It is built by the image before a ~, or by one that is found for its language; a Dockerfile
builds itself. With --binary the source is sent to each build by oc start-build.`,
		Example: `  # Source with its Dockerfile
  oc new-build https://example.com/hello-world.git

  # Source with the builder image ruby
  oc new-build ruby~https://example.com/hello-world.git --to=hello

  # A Dockerfile alone
  oc new-build -D $'FROM centos:7\nRUN yum install -y httpd'

  # Source that is sent
  oc new-build --name=app --binary --strategy=docker`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(o.run(command.Context(), args))
		},
	}
	o.addFlags(command)
	return command
}

func (o *newBuild) addFlags(command *cobra.Command) {
	o.print.AddFlags(command)
	flags, options := command.Flags(), &o.request.Options
	flags.StringSliceVar(&o.images, "docker-image", nil, "Image of a registry that builds or is built upon.")
	flags.StringSliceVarP(&o.streams, "image-stream", "i", nil, "Image stream, with a tag or without, that builds or is built upon.")
	flags.StringSliceVar(&o.code, "code", nil, "Source: a Git URL or a directory.")
	flags.StringVarP(&options.Inline, "dockerfile", "D", "", "Text of a Dockerfile, or - for standard input.")
	flags.BoolVar(&options.Binary, "binary", false, "The source is sent to each build.")
	flags.StringArrayVarP(&o.buildEnv, "env", "e", nil, "Variable of builds, as KEY=VALUE.")
	flags.StringArrayVar(&o.buildEnvFiles, "env-file", nil, "File with variables of builds, or - for standard input.")
	flags.StringArrayVar(&o.arguments, "build-arg", nil, "Argument of the Dockerfile, as KEY=VALUE.")
	flags.StringArrayVar(&o.secrets, "build-secret", nil, "Secret that is laid into the source, as NAME[:DIRECTORY].")
	flags.StringArrayVar(&o.configs, "build-config-map", nil, "Configuration map that is laid into the source, as NAME[:DIRECTORY].")
	flags.StringVar(&options.SourceImage, "source-image", "", "Image, or tag of an image stream, of which files are laid into the source.")
	flags.StringVar(&o.sourcePath, "source-image-path", "", "What of --source-image is laid into which directory of the source, as PATH:DIRECTORY.")
	flags.StringVar(&options.SourceSecret, "source-secret", "", "Secret for the repository of the source.")
	flags.StringVar(&options.PushSecret, "push-secret", "", "Secret for the registry that is pushed to.")
	flags.StringVar(&o.to, "to", "", "Image stream tag that is pushed to, instead of one of the build's name.")
	flags.BoolVar(&o.toImage, "to-docker", false, "What --to names is an image of a registry.")
	flags.BoolVar(&options.NoOutput, "no-output", false, "Push nothing.")
	flags.StringVarP(&o.labels, "labels", "l", "", "Labels for all objects, as KEY=VALUE,KEY=VALUE.")
	flags.StringVar(&o.request.Name, "name", "", "Name of the build configuration, instead of one after the source or image.")
	flags.StringVar(&o.request.Strategy, "strategy", "", "How source is built: docker, source or pipeline.")
	flags.StringVar(&o.request.ContextDir, "context-dir", "", "Directory of the source within its repository.")
	flags.BoolVar(&o.missing, "allow-missing-images", false, "Accept images that are not there yet.")
	flags.BoolVar(&o.insecure, "insecure-registry", false, "Accept registries whose certificate cannot be checked.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only show what would be made.")
}

func (o *newBuild) run(ctx context.Context, args []string) error {
	if err := o.readOptions(); err != nil {
		return err
	}
	if err := o.read(args); err != nil {
		return err
	}
	if len(o.files) > 0 {
		return fmt.Errorf("%s is a template; use oc new-app", o.files[0])
	}
	finder, err := o.finder()
	if err != nil {
		return err
	}
	plan, err := newapp.New(ctx, finder, o.request)
	if err != nil {
		return err
	}
	if len(plan.Templates) > 0 {
		return fmt.Errorf("%s is a template; use oc new-app", plan.Templates[0].Name)
	}
	made, err := o.fill(ctx, finder, plan)
	if err != nil {
		return err
	}
	return o.make(ctx, plan, made)
}

// readOptions makes options of flags.
func (o *newBuild) readOptions() (err error) {
	options := &o.request.Options
	switch {
	case options.NoOutput && o.to != "":
		return errors.New("give only one of --to and --no-output")
	case options.Binary && options.Inline != "":
		return errors.New("give only one of --binary and --dockerfile: a build of a Dockerfile alone has nothing else to send")
	case o.toImage && o.to == "":
		return errors.New("say with --to which image of a registry is pushed to")
	case o.to != "":
		options.To = outputOf(o.to, o.toImage)
	}
	if err := o.readSourceImage(); err != nil {
		return err
	}
	if options.Inline == "-" {
		text, err := io.ReadAll(o.In)
		if err != nil {
			return fmt.Errorf("read Dockerfile: %w", err)
		}
		options.Inline = string(text)
	}
	for _, given := range o.secrets {
		name, dir, _ := strings.Cut(given, ":")
		options.Secrets = append(options.Secrets, buildv1.SecretBuildSource{Secret: corev1.LocalObjectReference{Name: name}, DestinationDir: dir})
	}
	for _, given := range o.configs {
		name, dir, _ := strings.Cut(given, ":")
		options.ConfigMaps = append(options.ConfigMaps, buildv1.ConfigMapBuildSource{ConfigMap: corev1.LocalObjectReference{Name: name}, DestinationDir: dir})
	}
	options.Arguments, err = build.Variables(o.arguments)
	return err
}

// readSourceImage reads what is laid into the source from an image. Without a directory it is the
// top of the source.
func (o *newBuild) readSourceImage() error {
	options := &o.request.Options
	if (options.SourceImage == "") != (o.sourcePath == "") {
		return errors.New("give --source-image and --source-image-path together: an image, and PATH:DIRECTORY")
	}
	if options.SourceImage == "" {
		return nil
	}
	source, directory, found := strings.Cut(o.sourcePath, ":")
	if !found {
		directory = "."
	}
	if source == "" || directory == "" || strings.HasPrefix(directory, "/") || slices.Contains(strings.Split(directory, "/"), "..") {
		return fmt.Errorf("--source-image-path %q must be PATH:DIRECTORY, with a directory within the source", o.sourcePath)
	}
	options.SourcePaths = []buildv1.ImageSourcePath{{SourcePath: source, DestinationDir: directory}}
	return nil
}

// outputOf is what --to names: an image of a registry, or a tag, by default latest.
func outputOf(to string, image bool) *corev1.ObjectReference {
	if image {
		return &corev1.ObjectReference{Kind: "DockerImage", Name: to}
	}
	namespace, name, found := strings.Cut(to, "/")
	if !found {
		namespace, name = "", to
	}
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	return &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}
}
