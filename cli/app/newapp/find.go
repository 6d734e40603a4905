package newapp

import (
	"context"
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

// openshift is the project whose streams and templates everybody may use.
const openshift = "openshift"

// Finder looks for images and templates in the current project, in the project openshift and in
// registries.
type Finder struct {
	Images    imageclient.ImageV1Interface
	Templates templateclient.TemplateV1Interface
	// Namespace is the current project.
	Namespace string
	// Insecure allows registries without a certificate that can be checked.
	Insecure bool
	// AllowMissing takes an image that is not found for one that will be there later.
	AllowMissing bool
	// AllowMissingTags takes a tag without an image, of an image stream that there is, for one that
	// will have an image later.
	AllowMissingTags bool
}

// NotFound is the error of something that is neither an image nor a template.
type NotFound struct{ Name string }

// Error says what was looked for.
func (n *NotFound) Error() string {
	return fmt.Sprintf("unable to locate any images in image streams, templates loaded in accessible projects, template files, local docker images with name %q", n.Name)
}

// Empty is the error of a tag that an image stream has without an image.
type Empty struct{ Stream, Tag string }

// Error says how an image comes there.
func (e *Empty) Error() string {
	return fmt.Sprintf("image stream %q has no image for its tag %q yet: an administrator pushes or imports one, "+
		"or makes it from packages as examples/builders of Slipway's source says", e.Stream, e.Tag)
}

// Find looks for what a component is made from: an image or a template, one of which is nil.
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
	return nil, nil, &NotFound{name}
}

// missing is an image of which only the name is known.
func missing(name string) *Image {
	_, tag := tagged(name)
	return &Image{Name: name, Reference: name, Tag: tag, Missing: true}
}

// tagged takes the tag from a reference; one without has the tag latest.
func tagged(reference string) (name, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	last := strings.LastIndex(reference, "/") + 1
	name, tag, found := strings.Cut(reference[last:], ":")
	if !found || tag == "" {
		tag = "latest"
	}
	return reference[:last] + name, tag
}

// projects are where a name may be, and the name there. A name that can be in none gives none.
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

// stream looks for a tag of an image stream. It is nil where there is none.
func (f *Finder) stream(ctx context.Context, name string) (*Image, error) {
	reference, tag := tagged(name)
	projects, bare := f.projects(reference)
	for _, project := range projects {
		found, err := f.Images.ImageStreamTags(project).Get(ctx, bare+":"+tag, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find image stream %q: %w", name, err)
		}
		if found.Image.Name == "" { // a tag without an image
			continue
		}
		image := &Image{Name: name, Namespace: project, Stream: bare, Tag: tag, Reference: found.Image.DockerImageReference}
		if found.Tag != nil {
			image.Annotations = found.Tag.Annotations
			if from := found.Tag.From; from != nil && from.Kind == image.tag("").Kind && !strings.Contains(from.Name, ":") {
				image.Tag = from.Name
			}
		}
		return image, image.describe(&found.Image)
	}
	return nil, nil
}

// empty is an error where an image stream has the tag and no image for it: what is in a registry
// under that name is something else. Where tags without an image are allowed it is what will be
// there later.
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
		if slices.ContainsFunc(stream.Spec.Tags, func(one imagev1.TagReference) bool { return one.Name == tag }) {
			return nil, &Empty{Stream: project + "/" + bare, Tag: tag}
		}
	}
	return nil, nil
}

// absent says that an answer means that there is nothing, at least for who asks.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

func (f *Finder) template(ctx context.Context, name string) (*templatev1.Template, error) {
	projects, bare := f.projects(name)
	for _, project := range projects {
		found, err := f.Templates.Templates(project).Get(ctx, bare, metav1.GetOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find template %q: %w", name, err)
		}
		return found, nil
	}
	return nil, nil
}

// registry asks the server to look for an image where its name says. Nothing is imported.
func (f *Finder) registry(ctx context.Context, name string) (*Image, error) {
	answer, err := f.Images.ImageStreamImports(f.Namespace).Create(ctx, &imagev1.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{Name: "newapp", Namespace: f.Namespace},
		Spec: imagev1.ImageStreamImportSpec{Images: []imagev1.ImageImportSpec{{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: name}, ImportPolicy: imagev1.TagImportPolicy{Insecure: f.Insecure},
		}}},
	}, metav1.CreateOptions{})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for image %q: %w", name, err)
	}
	if len(answer.Status.Images) == 0 || answer.Status.Images[0].Image == nil {
		return nil, nil
	}
	found := answer.Status.Images[0]
	image := missing(name)
	image.Missing, image.Insecure, image.Reference = false, f.Insecure, found.Image.DockerImageReference
	return image, image.describe(found.Image)
}

// Builder looks for an image that builds a language: a stream of which a tag supports it, or an
// image of its name.
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

// supports reports whether an annotation such as "ruby:2.5,ruby" has a language.
func supports(annotation, language string) bool {
	return slices.ContainsFunc(strings.Split(annotation, ","), func(one string) bool {
		name, _, _ := strings.Cut(strings.TrimSpace(one), ":")
		return name == language
	})
}
