package newapp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// BuildOptions are what flags say of the builds alone that are made.
type BuildOptions struct {
	// Inline is the text of a Dockerfile that is built without other source. Binary says that the
	// source is sent to each build.
	Inline string
	Binary bool
	// To is where the image goes, nil for an image stream of the build's own name; NoOutput keeps
	// none.
	To       *corev1.ObjectReference
	NoOutput bool
	// PushSecret and SourceSecret are names of secrets, for the image's registry and the source's
	// repository.
	PushSecret, SourceSecret string
	// Secrets and ConfigMaps are laid into the source.
	Secrets    []buildv1.SecretBuildSource
	ConfigMaps []buildv1.ConfigMapBuildSource
	// Arguments are those of a Dockerfile.
	Arguments []corev1.EnvVar
	// SourceImage is an image of which files are laid into the source, SourcePaths which and where.
	SourceImage string
	SourcePaths []buildv1.ImageSourcePath

	images []buildv1.ImageSource // what SourceImage is
}

// findSource finds the image of which files are laid into the source.
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

// alone is a build without source of its own: of a Dockerfile that is given, or of what is sent to
// it.
func (p *Plan) alone(ctx context.Context, finder *Finder, part *Part) (*Build, error) {
	build := &Build{Source: &Source{}, Strategy: p.Strategy, Binary: p.Options.Binary, Inline: p.Options.Inline}
	switch {
	case build.Inline != "":
		if p.Strategy != "" && p.Strategy != DockerStrategy {
			return nil, fmt.Errorf("a Dockerfile is built with the strategy docker, not %s", p.Strategy)
		}
		build.Strategy = DockerStrategy
		var err error
		if build.Dockerfile, err = ParseDockerfile(build.Inline); err != nil {
			return nil, err
		}
		if part.Image == nil && build.Dockerfile.From != "scratch" {
			part.Image, _, err = finder.Find(ctx, Component{From: build.Dockerfile.From, Source: "-"})
			if err != nil {
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
		return nil, errors.New("name the image that builds the source which is sent, or give --strategy=docker")
	}
	build.Source.Name = part.Name
	return build, nil
}

// output is where the image of a part goes, nil for nowhere.
func (p *Plan) output(part Part) *corev1.ObjectReference {
	switch {
	case p.Options.NoOutput:
		return nil
	case p.Options.To != nil:
		return p.Options.To
	}
	return &corev1.ObjectReference{Kind: "ImageStreamTag", Name: part.Name + ":latest"}
}

// outputStream is the image stream of the project that a part pushes to, empty for none.
func (p *Plan) outputStream(part Part) string {
	to := p.output(part)
	if part.Build.Strategy == PipelineStrategy || to == nil || to.Kind != "ImageStreamTag" || to.Namespace != "" && to.Namespace != p.Namespace {
		return ""
	}
	name, _, _ := strings.Cut(to.Name, ":")
	return name
}

// checkOutput refuses a build that would push in place of the image that it starts from.
func (p *Plan) checkOutput(part Part) error {
	if part.Build == nil || part.Image == nil || part.Image.Stream == "" {
		return nil
	}
	from, to := part.Image.tag(p.Namespace), p.output(part)
	if to != nil && to.Kind == from.Kind && to.Name == from.Name && (from.Namespace == "" || from.Namespace == p.Namespace) && (to.Namespace == "" || to.Namespace == p.Namespace) {
		return fmt.Errorf("the build would push to %q, which it starts from: give --to or --name", to.Name)
	}
	return nil
}

// apply puts the options into a configuration.
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
