// Package newapp plans the objects that `oc new-app` and `oc new-build` create for images, image
// streams, templates and source, and describes the plan. It does not change anything in the
// cluster.
//
// Source: OpenShift Container Platform 3.11 Developer Guide, Creating New Applications. The
// objects, names and messages match OpenShift 3.11's client.
package newapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
)

// Build strategies, as named in flags.
const (
	DockerStrategy   = "docker"
	SourceStrategy   = "source"
	PipelineStrategy = "pipeline"
)

// Request contains the arguments and flags of a command.
type Request struct {
	Components []Component
	// Sources contains the source arguments without a builder image. If there is exactly one
	// source, New searches Components for images that can build the source and have no source yet.
	// If it finds one image, New builds the source with that image. If it finds several images, New
	// returns an error.
	Sources []string
	// Name is the name of the first part and its objects. It defaults to the name of the source or
	// image.
	Name string
	// Strategy is the build strategy. If it is empty, New derives it from the source. ContextDir is
	// the directory within the source.
	Strategy, ContextDir string
	// Environment contains the environment variables for containers, and BuildEnvironment the
	// environment variables for builds.
	Environment, BuildEnvironment []corev1.EnvVar
	// Labels are set on all objects. If Labels is empty, the objects get the app label.
	Labels map[string]string
	// AsTest creates test deployments, whose pods exist only during a deployment.
	AsTest bool
	// BuildOnly means that no deployments or services are created. By is the name of the command.
	// It is recorded in an annotation on the objects.
	BuildOnly bool
	By        string
	// Options apply only to builds.
	Options BuildOptions
}

// Part is a container in the application, a build, or both.
type Part struct {
	Name string
	// Image is the image to deploy, or the builder or base image of the build.
	Image *Image
	// Build is nil if the image is deployed unchanged.
	Build *Build
	Group int
}

// Build describes how to build an image from source.
type Build struct {
	Source   *Source
	Strategy string
	// Binary means that the client uploads the source when it starts a build.
	Binary     bool
	Dockerfile *Dockerfile
	// Inline is the text of a Dockerfile that requires no other source.
	Inline string
	// Language is the detected language of the source. New sets it only if it has to choose a
	// builder.
	Language string
}

// scratch is the empty base image of a Dockerfile. No registry contains it.
const scratch = "scratch"

// Plan describes the objects to create.
type Plan struct {
	Request
	Namespace string
	Parts     []Part
	Templates []*templatev1.Template
}

// New resolves the components of a request. Its error contains the errors for all components.
func New(ctx context.Context, finder *Finder, request Request) (*Plan, error) {
	plan := &Plan{Request: request, Namespace: finder.Namespace}
	if err := plan.Options.findSource(ctx, finder); err != nil {
		return nil, err
	}
	components, err := pair(ctx, finder, request)
	if err != nil {
		return nil, err
	}
	if len(components) == 0 && request.BuildOnly {
		components = []Component{{}}
	}
	var problems []error
	for _, component := range components {
		problems = append(problems, plan.add(ctx, finder, component))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if plan.Name != "" && len(plan.Pods()) > 1 {
		return nil, errors.New("only one component or source repository can be used when specifying a name")
	}
	plan.name()
	for _, part := range plan.Parts {
		problems = append(problems, plan.checkOutput(part))
	}
	return plan, errors.Join(problems...)
}

// pair returns the components. If there is exactly one source without a builder, and exactly one
// image can build it, pair adds the source to this image's component. If more than one image can
// build the source, pair returns an error. In all other cases, each source becomes a separate
// component.
func pair(ctx context.Context, finder *Finder, request Request) ([]Component, error) {
	components, sources := []Component{}, slices.Clone(request.Sources)
	for _, component := range request.Components {
		if component.From == "" {
			sources = append(sources, component.Source)
			continue
		}
		components = append(components, component)
	}
	builders := 0
	for i, component := range components {
		if len(sources) != 1 || component.Source != "" {
			continue
		}
		image, _, err := finder.Find(ctx, component)
		if err != nil {
			return nil, err
		}
		if image != nil && (image.Builder() || component.Kind == ImageKind || component.Kind == StreamKind || len(components) == 1) {
			components[i].Source = sources[0]
			builders++
		}
	}
	switch {
	case builders > 1:
		return nil, fmt.Errorf("several images could build %q: choose one with IMAGE~%[1]s", sources[0])
	case builders == 1:
		return components, nil
	}
	for i, source := range sources {
		components = append(components, Component{Source: source, Group: -1 - i})
	}
	return components, nil
}

// add resolves one component and adds the resulting template or part to the plan.
func (p *Plan) add(ctx context.Context, finder *Finder, component Component) (err error) {
	part := Part{Group: component.Group}
	// The inline Dockerfile itself specifies the empty base image, so there is no image to find.
	if component.From == scratch && p.Options.Inline != "" {
		part.Name, component.From = scratch, ""
	}
	if component.From != "" {
		image, template, err := finder.Find(ctx, component)
		if err != nil {
			return err
		}
		if template != nil {
			p.Templates = append(p.Templates, template)
			return nil
		}
		part.Image, part.Name = image, Name(cmp.Or(image.Stream, image.Name))
	}
	if component.Source != "" {
		if part.Build, err = p.build(ctx, finder, component.Source, &part); err != nil {
			return err
		}
		if image := part.Image; p.Strategy == "" && part.Build.Strategy == SourceStrategy && !image.Missing && !image.Builder() {
			return fmt.Errorf("the image match %q for source repository %q does not appear to be a source-to-image builder; "+
				"to build with it, set --strategy=source, or --strategy=docker to build a Dockerfile on it", image.Name, component.Source)
		}
	}
	if component.Source == "" && p.BuildOnly {
		if part.Build, err = p.standalone(ctx, finder, &part); err != nil {
			return err
		}
	}
	if part.Name == "" {
		part.Name = p.Name
	}
	if part.Name == "" {
		return fmt.Errorf("no application name can be derived from %q; set --name", cmp.Or(component.Source, component.From))
	}
	p.Parts = append(p.Parts, part)
	return nil
}

// build inspects the source and, if the part requires one, finds a builder or base image.
func (p *Plan) build(ctx context.Context, finder *Finder, text string, part *Part) (*Build, error) {
	source, err := Open(ctx, text, p.ContextDir)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	part.Name = Name(source.Name)
	build := &Build{Source: source, Strategy: p.Strategy, Binary: source.URL == "" || p.Options.Binary}
	switch {
	case build.Strategy == PipelineStrategy:
		part.Image = nil // the Jenkinsfile in the source specifies the images
		return build, nil
	case part.Image != nil && build.Strategy != DockerStrategy:
		build.Strategy = SourceStrategy
		return build, nil
	}
	dir, err := source.Files(ctx)
	if err != nil {
		return nil, err
	}
	return build, build.inspect(ctx, finder, dir, part)
}

// inspect chooses the strategy and the language based on the files in dir.
func (b *Build) inspect(ctx context.Context, finder *Finder, dir string, part *Part) (err error) {
	if b.Dockerfile, err = ReadDockerfile(dir); err != nil {
		return err
	}
	_, noJenkinsfile := os.Stat(filepath.Join(dir, "Jenkinsfile"))
	switch {
	case b.Strategy == "" && noJenkinsfile == nil:
		b.Strategy = PipelineStrategy
	case b.Strategy == "" && b.Dockerfile != nil:
		b.Strategy = DockerStrategy
	case b.Strategy == "":
		b.Strategy = SourceStrategy
	}
	switch {
	case b.Strategy == PipelineStrategy:
		return nil
	case b.Strategy == DockerStrategy && b.Dockerfile == nil:
		return fmt.Errorf("build %q: No Dockerfile was found, which the strategy docker needs", b.Source.Name)
	case b.Strategy == DockerStrategy:
		if part.Image == nil {
			part.Image, err = finder.base(ctx, b.Dockerfile.From)
		}
		return err
	}
	if b.Language = Language(dir); b.Language == "" {
		return fmt.Errorf("no language matched the source repository; name a builder image as IMAGE~%s", b.Source.Name)
	}
	part.Image, err = finder.Builder(ctx, b.Language)
	return err
}

// name assigns the requested name to the first part and makes all names unique.
func (p *Plan) name() {
	inUse := map[string]bool{}
	for i := range p.Parts {
		part := &p.Parts[i]
		if i == 0 && p.Name != "" {
			part.Name = p.Name
		}
		base := part.Name
		for n := 1; inUse[part.Name]; n++ {
			part.Name = fmt.Sprintf("%s-%d", base, n)
		}
		inUse[part.Name] = true
	}
}

// Pods returns the parts of each pod, in the order of the request.
func (p *Plan) Pods() (pods [][]Part) {
	at := map[int]int{}
	for _, part := range p.Parts {
		i, ok := at[part.Group]
		if !ok {
			i = len(pods)
			at[part.Group], pods = i, append(pods, nil)
		}
		pods[i] = append(pods[i], part)
	}
	return pods
}

// deployed reports whether a part has a container.
func (p *Plan) deployed(part Part) bool {
	return !p.BuildOnly && (part.Build == nil || part.Build.Strategy != PipelineStrategy)
}

// ports returns the ports of a part's container.
func (part Part) ports() []corev1.ContainerPort {
	if part.Build != nil && part.Build.Dockerfile != nil && len(part.Build.Dockerfile.Ports) > 0 {
		return ports(append(slices.Clone(part.Build.Dockerfile.Ports), part.Image.Ports...))
	}
	return ports(part.Image.Ports)
}
