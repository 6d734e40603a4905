package newapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openshift is the project whose image streams and templates every user can use.
const openshift = "openshift"

// Finder finds images and templates in the current project, in the openshift project and in
// registries.
type Finder struct {
	Images    imageclient.ImageV1Interface
	Templates templateclient.TemplateV1Interface
	// Namespace is the current project.
	Namespace string
	// Insecure allows registries whose certificates cannot be verified.
	Insecure bool
	// AllowMissing accepts images that do not exist yet.
	AllowMissing bool
	// AllowMissingTags accepts tags that have no image, if their image streams exist.
	AllowMissingTags bool
}

// NotFound is the error for a name that is neither an image nor a template.
type NotFound struct {
	Name string
	// Available lists the image streams and templates that the user can choose from.
	Available []Match
}

// Error returns a message that contains the name and the available image streams and templates.
func (n *NotFound) Error() string {
	text := fmt.Sprintf("unable to locate any images in image streams, templates loaded in accessible projects, template files, local docker images with name %q", n.Name)
	if len(n.Available) > 0 {
		text += "; available image streams and templates: " + listed(n.Available)
	}
	return text
}

// Empty is the error for an image stream tag that has no image yet.
type Empty struct {
	Stream, Tag string
	// Command is the command that creates the image. It is empty if the image is not one of
	// Slipway's samples.
	Command string
}

// Error returns a message that explains how to create the tag's image.
func (e *Empty) Error() string {
	text := fmt.Sprintf("image stream %q has no image for its tag %q yet; ask an administrator to push or import one", e.Stream, e.Tag)
	if e.Command != "" {
		text += ", or to build it on a master with: " + e.Command
	}
	return text
}

// Find resolves a component's From field to an image or a template. The other result is nil.
func (f *Finder) Find(ctx context.Context, component Component) (image *Image, template *templatev1.Template, err error) {
	name, kind := component.From, component.Kind
	if kind == AnyKind || kind == StreamKind {
		if image, err = f.stream(ctx, name); image != nil || err != nil {
			return image, nil, err
		}
	}
	if (kind == AnyKind || kind == TemplateKind) && component.Source == "" {
		if template, err = f.template(ctx, name); template != nil || err != nil {
			return nil, template, err
		}
	}
	if kind != ImageKind && kind != TemplateKind && !f.AllowMissing {
		if image, err = f.empty(ctx, name); image != nil || err != nil {
			return image, nil, err
		}
	}
	if kind == AnyKind || kind == ImageKind {
		if image, err = f.registry(ctx, name); image != nil || err != nil {
			return image, nil, err
		}
	}
	if f.AllowMissing && kind != TemplateKind {
		image = missing(name)
		image.Insecure = f.Insecure
		return image, nil, nil
	}
	return nil, nil, f.missed(ctx, component)
}

// base finds a Dockerfile's base image. As in OpenShift 3, it also accepts an image that Find
// cannot find, because only the build needs the image.
func (f *Finder) base(ctx context.Context, name string) (*Image, error) {
	image, _, err := f.Find(ctx, Component{From: name, Source: name})
	var unknown *NotFound
	var partial *PartialMatch
	var empty *Empty
	if errors.As(err, &empty) { // the tag must get an image before the build starts
		namespace, stream, _ := strings.Cut(empty.Stream, "/")
		return &Image{Name: name, Reference: name, Namespace: namespace, Stream: stream, Tag: empty.Tag, Missing: true}, nil
	}
	if errors.As(err, &unknown) || errors.As(err, &partial) {
		image = missing(name)
		image.Insecure = f.Insecure
		return image, nil
	}
	return image, err
}

// missing returns the Image for a name that Find cannot resolve. It contains only the name and the
// tag.
func missing(name string) *Image {
	_, tag := tagged(name)
	return &Image{Name: name, Reference: name, Tag: tag, Missing: true}
}

// latest is the default tag of a reference.
const latest = "latest"

// tagged splits a reference into its name and tag, and drops the digest. The default tag is latest.
func tagged(reference string) (name, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	last := strings.LastIndex(reference, "/") + 1
	name, tag, ok := strings.Cut(reference[last:], ":")
	if !ok || tag == "" {
		tag = latest
	}
	return reference[:last] + name, tag
}

// projects returns the projects to search for an image stream or template, and its name without the
// project. It returns no projects if name can only refer to an image in a registry.
func (f *Finder) projects(name string) (projects []string, bare string) {
	switch namespace, rest, qualified := strings.Cut(name, "/"); {
	case !qualified:
		return slices.Compact([]string{f.Namespace, openshift}), name
	case strings.Contains(rest, "/") && !strings.HasPrefix(rest, "/") || strings.ContainsAny(namespace, ".:"):
		return nil, ""
	default:
		return []string{namespace}, strings.TrimPrefix(rest, "/")
	}
}

// stream finds an image by its image stream tag. It returns nil if the tag does not exist or has no
// image.
func (f *Finder) stream(ctx context.Context, name string) (*Image, error) {
	reference, tag := tagged(name)
	projects, bare := f.projects(reference)
	for _, project := range projects {
		streamTag, err := f.Images.ImageStreamTags(project).Get(ctx, bare+":"+tag, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find image stream %q: %w", name, err)
		}
		if streamTag.Image.Name == "" { // the tag has no image
			continue
		}
		image := &Image{Name: name, Namespace: project, Stream: bare, Tag: tag, Reference: streamTag.Image.DockerImageReference}
		if streamTag.Tag != nil {
			image.Annotations = streamTag.Tag.Annotations
			if from := streamTag.Tag.From; from != nil && from.Kind == image.tag("").Kind && !strings.Contains(from.Name, ":") {
				image.Tag = from.Name
			}
		}
		return image, image.describe(&streamTag.Image)
	}
	return nil, nil
}

// empty returns an error if the image stream exists but has no tags, or if its tag has no image
// yet. Otherwise, Find would use an unrelated image of the same name from a registry. If
// AllowMissingTags is set, empty returns an Image with Missing set instead of an error.
func (f *Finder) empty(ctx context.Context, name string) (*Image, error) {
	reference, tag := tagged(name)
	projects, bare := f.projects(reference)
	for _, project := range projects {
		stream, err := f.Images.ImageStreams(project).Get(ctx, bare, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find image stream %q: %w", name, err)
		}
		if f.AllowMissingTags {
			return &Image{Name: name, Reference: name, Namespace: project, Stream: bare, Tag: tag, Missing: true}, nil
		}
		if len(stream.Spec.Tags)+len(stream.Status.Tags) == 0 {
			return nil, fmt.Errorf("no tags found on matching image stream: %q; to use a tag that will exist later, add --allow-missing-imagestream-tags", project+"/"+bare)
		}
		if slices.ContainsFunc(stream.Spec.Tags, func(item imagev1.TagReference) bool { return item.Name == tag }) {
			return nil, &Empty{Stream: project + "/" + bare, Tag: tag, Command: buildCommand(stream, tag)}
		}
	}
	return nil, nil
}

// absent reports whether an error means that the object does not exist, cannot have this name, or
// is not accessible to the user.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

func (f *Finder) template(ctx context.Context, name string) (*templatev1.Template, error) {
	projects, bare := f.projects(name)
	for _, project := range projects {
		tmpl, err := f.Templates.Templates(project).Get(ctx, bare, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find template %q: %w", name, err)
		}
		return tmpl, nil
	}
	return nil, nil
}

// registry reads an image's metadata from its registry through the API server, without importing
// the image. It returns nil if the server cannot read the image.
func (f *Finder) registry(ctx context.Context, name string) (*Image, error) {
	response, err := f.Images.ImageStreamImports(f.Namespace).Create(ctx, &imagev1.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{Name: "newapp", Namespace: f.Namespace},
		Spec: imagev1.ImageStreamImportSpec{Images: []imagev1.ImageImportSpec{{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: name}, ImportPolicy: imagev1.TagImportPolicy{Insecure: f.Insecure},
		}}},
	}, metav1.CreateOptions{})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find image %q: %w", name, err)
	}
	if len(response.Status.Images) == 0 || response.Status.Images[0].Image == nil {
		return nil, nil
	}
	status := response.Status.Images[0]
	image := missing(name)
	image.Missing, image.Insecure = false, f.Insecure
	return image, image.describe(status.Image)
}

// Builder finds a builder image for a language: a builder tag of an image stream whose supports
// annotation contains the language, or else an image whose name is the language.
func (f *Finder) Builder(ctx context.Context, language string) (*Image, error) {
	for _, project := range slices.Compact([]string{f.Namespace, openshift}) {
		list, err := f.Images.ImageStreams(project).List(ctx, metav1.ListOptions{})
		if err != nil {
			if absent(err) {
				continue
			}
			return nil, fmt.Errorf("find builder of %s: %w", language, err)
		}
		for _, stream := range list.Items {
			for _, tag := range stream.Spec.Tags {
				if supports(tag.Annotations["supports"], language) && slices.Contains(strings.Split(tag.Annotations["tags"], ","), "builder") {
					image, _, err := f.Find(ctx, Component{From: project + "/" + stream.Name + ":" + tag.Name, Kind: StreamKind})
					return image, err
				}
			}
		}
	}
	image, _, err := f.Find(ctx, Component{From: language, Source: language})
	return image, err
}

// supports reports whether an annotation such as "ruby:2.5,ruby" contains the language.
func supports(annotation, language string) bool {
	return slices.ContainsFunc(strings.Split(annotation, ","), func(item string) bool {
		name, _, _ := strings.Cut(strings.TrimSpace(item), ":")
		return name == language
	})
}
