package app

import (
	"cmp"
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
	"github.com/slipway-platform/slipway/cli/objects"
)

// newBuild holds the state of `oc new-build`, which is `oc new-app` without deployments and
// services.
type newBuild struct {
	newApp
	to                          string
	toImage                     bool
	secrets, configs, arguments []string
	sourcePath                  string
}

// NewBuild returns the `oc new-build` command.
func NewBuild(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &newBuild{newApp: newApp{
		IOStreams: streams, factory: factory, request: newapp.Request{By: "OpenShiftNewBuild", BuildOnly: true},
		print: genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme),
	}}
	command := &cobra.Command{
		Use:   "new-build (IMAGE | IMAGESTREAM | PATH | URL ...)",
		Short: "Create a new build configuration",
		Long: `Create a build configuration from source code, and start it.

Source is a Git repository or a directory. It is built with the image before a ~, or with a builder image for its language. A Dockerfile
needs no builder image. With --binary, oc start-build uploads the source for each build.`,
		Example: `  # Build source with its Dockerfile
  oc new-build https://example.com/hello-world.git

  # Build source with the builder image ruby
  oc new-build ruby~https://example.com/hello-world.git --to=hello

  # Build an image from a Dockerfile without other source
  oc new-build -D $'FROM centos:7\nRUN yum install -y httpd'

  # Build source that oc start-build uploads
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
	flags.StringSliceVar(&o.images, "docker-image", nil, "Builder or base image in a registry.")
	addImageAlias(flags)
	objects.AddOldPrintFlags(command)
	flags.StringSliceVarP(&o.streams, "image-stream", "i", nil, "Image stream of the builder or base image, with or without a tag.")
	flags.StringSliceVar(&o.code, "code", nil, "Source: a Git URL or a directory.")
	flags.StringVarP(&options.Inline, "dockerfile", "D", "", "Text of a Dockerfile, or - for standard input.")
	flags.BoolVar(&options.Binary, "binary", false, "Build source that oc start-build uploads.")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "Build environment variable, as KEY=VALUE.")
	flags.StringArrayVar(&o.envFiles, "env-file", nil, "File with build environment variables, or - for standard input.")
	flags.StringArrayVar(&o.buildEnv, "build-env", nil, "Build environment variable, as KEY=VALUE.")
	flags.StringArrayVar(&o.buildEnvFiles, "build-env-file", nil, "File with build environment variables, or - for standard input.")
	flags.StringArrayVar(&o.arguments, "build-arg", nil, "Dockerfile build argument, as KEY=VALUE.")
	flags.StringArrayVar(&o.secrets, "build-secret", nil, "Secret to copy into the source, as NAME[:DIRECTORY].")
	flags.StringArrayVar(&o.configs, "build-config-map", nil, "Configuration map to copy into the source, as NAME[:DIRECTORY].")
	flags.StringVar(&options.SourceImage, "source-image", "", "Image, or tag of an image stream, with files to copy into the source.")
	flags.StringVar(&o.sourcePath, "source-image-path", "", "Files of --source-image and the directory of the source for them, as PATH:DIRECTORY.")
	flags.StringVar(&options.SourceSecret, "source-secret", "", "Secret for the source repository.")
	flags.StringVar(&options.PushSecret, "push-secret", "", "Secret for the output registry.")
	flags.StringVar(&o.to, "to", "", "Output image stream tag. By default, a tag with the build's name.")
	flags.BoolVar(&o.toImage, "to-docker", false, "Treat the output of --to as an image in a registry.")
	flags.BoolVar(&options.NoOutput, "no-output", false, "Discard the image instead of pushing it.")
	flags.StringVarP(&o.labels, "labels", "l", "", "Labels for all objects, as KEY=VALUE,KEY=VALUE.")
	flags.StringVar(&o.request.Name, "name", "", "Name of the build configuration. By default, the name of the source or image.")
	flags.StringVar(&o.request.Strategy, "strategy", "", "Strategy to build source: docker, source or pipeline.")
	flags.StringVar(&o.request.ContextDir, "context-dir", "", "Directory of the source within its repository.")
	flags.BoolVar(&o.missing, "allow-missing-images", false, "Accept images that do not exist yet.")
	flags.BoolVar(&o.missingTags, "allow-missing-imagestream-tags", false, "Accept tags of image streams that have no image yet.")
	flags.BoolVar(&o.insecure, "insecure-registry", false, "Accept registries whose certificate cannot be verified.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Print the objects without creating them.")
}

func (o *newBuild) run(ctx context.Context, args []string) error {
	if err := o.readOptions(); err != nil {
		return err
	}
	switch builds := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !newapp.HasSource(arg) }); {
	case o.request.Options.Binary && len(o.code)+len(builds) > 0:
		return errors.New("specifying binary builds and source repositories at the same time is not allowed")
	case o.to != "" && len(o.code)+len(builds) > 1:
		return errors.New("only one component with source can be used when specifying an output image reference")
	case len(o.arguments) > 0 && o.request.Strategy != "" && o.request.Strategy != newapp.DockerStrategy:
		return errNoDockerBuild
	}
	if o.request.Options.Binary && len(args)+len(o.code)+len(o.streams)+len(o.images) == 0 && o.request.Name == "" {
		return errors.New("you must provide a --name when you don't specify a source repository or base image")
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
	plan, err := o.plan(ctx, finder)
	if err != nil {
		return err
	}
	if len(plan.Templates) > 0 {
		return fmt.Errorf("%s is a template; use oc new-app", plan.Templates[0].Name)
	}
	objects, err := o.fill(ctx, finder, plan)
	if err != nil {
		return err
	}
	return o.create(ctx, plan, objects)
}

// readOptions sets the build options from flags.
func (o *newBuild) readOptions() (err error) {
	options := &o.request.Options
	switch {
	case options.NoOutput && o.to != "":
		return errors.New("use only one of --to and --no-output")
	case options.Binary && options.Inline != "":
		return errors.New("use only one of --binary and --dockerfile: a build from a Dockerfile has no other source")
	case o.toImage && o.to == "":
		options.ToImage = true
	case o.to != "":
		options.To = outputOf(o.to, o.toImage)
		o.request.Name = cmp.Or(o.request.Name, newapp.Name(o.to))
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
	for _, arg := range o.secrets {
		name, dir, _ := strings.Cut(arg, ":")
		options.Secrets = append(options.Secrets, buildv1.SecretBuildSource{Secret: corev1.LocalObjectReference{Name: name}, DestinationDir: dir})
	}
	for _, arg := range o.configs {
		name, dir, _ := strings.Cut(arg, ":")
		options.ConfigMaps = append(options.ConfigMaps, buildv1.ConfigMapBuildSource{ConfigMap: corev1.LocalObjectReference{Name: name}, DestinationDir: dir})
	}
	options.Arguments, err = build.Variables(o.arguments)
	return err
}

// readSourceImage parses --source-image-path into SourcePaths. The default destination is the root
// directory of the source.
func (o *newBuild) readSourceImage() error {
	options := &o.request.Options
	switch {
	case options.SourceImage != "" && o.sourcePath == "":
		return errors.New("--source-image-path must be specified when --source-image is specified.")
	case options.SourceImage == "" && o.sourcePath != "":
		return errors.New("--source-image must be specified when --source-image-path is specified.")
	}
	if options.SourceImage == "" {
		return nil
	}
	source, directory, ok := strings.Cut(o.sourcePath, ":")
	if !ok {
		directory = "."
	}
	if source == "" || directory == "" || strings.HasPrefix(directory, "/") || slices.Contains(strings.Split(directory, "/"), "..") {
		return fmt.Errorf("--source-image-path %q must be PATH:DIRECTORY, with a directory within the source", o.sourcePath)
	}
	options.SourcePaths = []buildv1.ImageSourcePath{{SourcePath: source, DestinationDir: directory}}
	return nil
}

// outputOf parses --to: an image in a registry, or an image stream tag. The default tag is latest.
func outputOf(to string, image bool) *corev1.ObjectReference {
	if image {
		return &corev1.ObjectReference{Kind: "DockerImage", Name: to}
	}
	namespace, name, ok := strings.Cut(to, "/")
	if !ok {
		namespace, name = "", to
	}
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	return &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}
}
