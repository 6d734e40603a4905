package newapp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// BuildOptions contains the options that apply only to builds.
type BuildOptions struct {
	// Inline is the text of a Dockerfile that is built without any other source. Binary means that
	// the client uploads the source when it starts a build.
	Inline string
	Binary bool
	// To is the build's output. If To is nil, the output is an image stream tag with the build's
	// name. NoOutput discards the image.
	To       *corev1.ObjectReference
	NoOutput bool
	// ToImage makes the default output an image in a registry instead of an image stream tag.
	ToImage bool
	// PushSecret and SourceSecret are names of secrets. The secrets contain the credentials for the
	// output registry and for the Git repository.
	PushSecret, SourceSecret string
	// Secrets and ConfigMaps specify the secrets and config maps that are copied into the source.
	Secrets    []buildv1.SecretBuildSource
	ConfigMaps []buildv1.ConfigMapBuildSource
	// Arguments contains the build arguments for a Dockerfile.
	Arguments []corev1.EnvVar
	// SourceImage is an image that contains additional files for the source. SourcePaths contains
	// pairs of paths: a path in the image and its destination in the source.
	SourceImage string
	SourcePaths []buildv1.ImageSourcePath

	images []buildv1.ImageSource // contains the resolved SourceImage
}

// findSource resolves SourceImage, if it is set.
func (o *BuildOptions) findSource(ctx context.Context, finder *Finder) error {
	if o.SourceImage == "" {
		return nil
	}
	image, _, err := finder.Find(ctx, Component{From: o.SourceImage, Source: "-"})
	if err != nil {
		return err
	}
	from := corev1.ObjectReference{Kind: "DockerImage", Name: image.Name}
	if image.Stream != "" {
		from = *image.tag(finder.Namespace)
	}
	o.images = []buildv1.ImageSource{{From: from, Paths: o.SourcePaths}}
	return nil
}

// standalone returns a build without a repository or directory. The build's source is Inline, or
// the client uploads the source.
func (p *Plan) standalone(ctx context.Context, finder *Finder, part *Part) (*Build, error) {
	build := &Build{Source: &Source{}, Strategy: p.Strategy, Binary: p.Options.Binary, Inline: p.Options.Inline}
	switch {
	case build.Inline != "":
		if p.Strategy != "" && p.Strategy != DockerStrategy {
			return nil, fmt.Errorf("a Dockerfile needs the strategy docker, not %s", p.Strategy)
		}
		build.Strategy = DockerStrategy
		var err error
		if build.Dockerfile, err = ParseDockerfile(build.Inline); err != nil {
			return nil, err
		}
		if part.Image == nil && build.Dockerfile.From != scratch {
			if part.Image, err = finder.base(ctx, build.Dockerfile.From); err != nil {
				return nil, err
			}
			part.Name = Name(part.Image.Name)
		}
	case !build.Binary:
		return nil, errors.New("you must specify at least one source repository URL, provide a Dockerfile, or indicate you wish to use binary builds")
	case build.Strategy == "" && part.Image != nil && part.Image.Builder():
		build.Strategy = SourceStrategy
	case build.Strategy == "":
		build.Strategy = DockerStrategy
	}
	if build.Strategy == SourceStrategy && part.Image == nil {
		return nil, errors.New("you must provide a builder image when using the source strategy with a binary build, or use --strategy=docker")
	}
	build.Source.Name = part.Name
	return build, nil
}

// output returns the output of a part's build, or nil if the build has no output.
func (p *Plan) output(part Part) *corev1.ObjectReference {
	switch {
	case p.Options.NoOutput:
		return nil
	case p.Options.To != nil:
		return p.Options.To
	case p.Options.ToImage:
		return &corev1.ObjectReference{Kind: "DockerImage", Name: part.Name + ":latest"}
	}
	return &corev1.ObjectReference{Kind: "ImageStreamTag", Name: part.Name + ":latest"}
}

// outputStream returns the name of the image stream that a part's build pushes to. It returns "" if
// the build does not push to an image stream in the plan's project.
func (p *Plan) outputStream(part Part) string {
	to := p.output(part)
	if part.Build.Strategy == PipelineStrategy || to == nil || to.Kind != "ImageStreamTag" || to.Namespace != "" && to.Namespace != p.Namespace {
		return ""
	}
	name, _, _ := strings.Cut(to.Name, ":")
	return name
}

// checkOutput returns an error if a part's build would overwrite its base image.
func (p *Plan) checkOutput(part Part) error {
	if part.Build == nil || part.Image == nil || part.Image.Stream == "" {
		return nil
	}
	from, to := part.Image.tag(p.Namespace), p.output(part)
	if to != nil && to.Kind == from.Kind && to.Name == from.Name && (from.Namespace == "" || from.Namespace == p.Namespace) && (to.Namespace == "" || to.Namespace == p.Namespace) {
		return fmt.Errorf("the build would push to its base image %q: set --to or --name", to.Name)
	}
	return nil
}

// apply applies the options to a build config.
func (o *BuildOptions) apply(config *buildv1.BuildConfig) {
	secret := func(name string) *corev1.LocalObjectReference {
		if name == "" {
			return nil
		}
		return &corev1.LocalObjectReference{Name: name}
	}
	spec := &config.Spec
	spec.Source.SourceSecret, spec.Output.PushSecret = secret(o.SourceSecret), secret(o.PushSecret)
	spec.Source.Secrets, spec.Source.ConfigMaps, spec.Source.Images = o.Secrets, o.ConfigMaps, o.images
	if docker := spec.Strategy.DockerStrategy; docker != nil {
		docker.BuildArgs = o.Arguments
	}
}
