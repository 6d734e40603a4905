package image

import (
	"context"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// view reads the stores that tags and images of streams are seen through.
type view struct {
	streams, status, images *registry.Store
}

func newView(deps apiserver.Deps) view {
	return view{
		streams: deps.Stores[imagev1.Resource("imagestreams")],
		status:  deps.Stores[imagev1.Resource("imagestreams/status")],
		images:  deps.Stores[imagev1.Resource("images")],
	}
}

// Destroy leaves the stores to their resources.
func (view) Destroy() {}

// NamespaceScoped says that streams live in namespaces.
func (view) NamespaceScoped() bool { return true }

func (v view) stream(ctx context.Context, name string) (*imagev1.ImageStream, error) {
	found, err := v.streams.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return found.(*imagev1.ImageStream), nil
}

// image reads an image without the parts that only registries need; one that is gone is an empty one with
// its name. An event without an image has only a place: nothing of an image is shown for it.
func (v view) image(ctx context.Context, event imagev1.TagEvent) (imagev1.Image, error) {
	if event.Image == "" {
		parsed, _ := record.ParseReference(event.DockerImageReference)
		return imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: parsed.Digest}, DockerImageReference: event.DockerImageReference}, nil
	}
	found, err := v.images.Get(request.WithNamespace(ctx, ""), event.Image, &metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: event.Image}, DockerImageReference: event.DockerImageReference}, nil
	}
	if err != nil {
		return imagev1.Image{}, fmt.Errorf("read image %q: %w", event.Image, err)
	}
	image := *found.(*imagev1.Image).DeepCopy()
	image.DockerImageManifest, image.DockerImageConfig = "", ""
	if event.DockerImageReference != "" {
		image.DockerImageReference = event.DockerImageReference
	}
	return image, nil
}

// keep stores the record of an image, or completes the one that exists. Only a record that comes with the manifest, or from the registry that has it, completes
// another.
func (v view) keep(ctx context.Context, image *imagev1.Image, dryRun []string) error {
	ctx = context.WithValue(request.WithNamespace(ctx, ""), completion{}, true)
	_, err := v.images.Create(ctx, image.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if !errors.IsAlreadyExists(err) {
		return err
	}
	if image.DockerImageManifest == "" && image.Annotations[record.ManifestStored] != "true" {
		return nil
	}
	complete := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		next, _ := record.Complete(stored.(*imagev1.Image), image)
		return next, nil
	}
	_, _, err = v.images.Update(ctx, image.Name, rest.DefaultUpdatedObjectInfo(nil, complete), nil, rest.ValidateAllObjectUpdateFunc, false,
		&metav1.UpdateOptions{DryRun: dryRun})
	if errors.IsNotFound(err) { // a prune removed it meanwhile
		_, err = v.images.Create(ctx, image.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	}
	return err
}

// metadata is that of an object which is a part of a stream.
func metadata(stream *imagev1.ImageStream, name string, created metav1.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: stream.Namespace, Name: name, UID: stream.UID, ResourceVersion: stream.ResourceVersion,
		CreationTimestamp: created, Labels: stream.Labels,
	}
}

// split divides a name such as "ruby:latest" or "ruby@sha256:...".
func split(name, separator, kind string) (stream, rest string, err error) {
	stream, rest, found := strings.Cut(name, separator)
	if !found || stream == "" || rest == "" || separator == ":" && strings.Contains(rest, ":") {
		return "", "", errors.NewBadRequest(fmt.Sprintf("%s %q must be in the form <stream>%s<%s>", kind, name, separator,
			map[string]string{":": "tag", "@": "id"}[separator]))
	}
	return stream, rest, nil
}

// streamImages is the view of the images that streams refer to, as "stream@id". An id may be shortened.
type streamImages struct {
	view
	rest.TableConvertor
}

var (
	_ rest.Getter               = &streamImages{}
	_ rest.Scoper               = &streamImages{}
	_ rest.SingularNameProvider = &streamImages{}
	_ rest.ShortNamesProvider   = &streamImages{}
	_ rest.TableConvertor       = &streamImages{}
)

func imageTable() rest.TableConvertor {
	return apiserver.Table([]apiserver.Column[*imagev1.ImageStreamImage]{
		{Name: "Docker Ref", Description: "Where a registry has the image", Value: func(i *imagev1.ImageStreamImage) any { return i.Image.DockerImageReference }},
		{Name: "Updated", Description: "When the stream got the image", Value: func(i *imagev1.ImageStreamImage) any {
			return apiserver.Since(i.CreationTimestamp) + " ago"
		}},
		{Name: "Image Name", Description: "Identity of the image", Value: func(i *imagev1.ImageStreamImage) any { return i.Image.Name }},
	})
}

// New makes an empty object.
func (*streamImages) New() runtime.Object { return &imagev1.ImageStreamImage{} }

// GetSingularName is the name of one.
func (*streamImages) GetSingularName() string { return "imagestreamimage" }

// ShortNames is the abbreviation.
func (*streamImages) ShortNames() []string { return []string{"isimage"} }

// Get finds an image that any tag of the stream refers to or referred to.
func (s *streamImages) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	streamName, id, err := split(name, "@", "imageStreamImage")
	if err != nil {
		return nil, err
	}
	stream, err := s.stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	found := map[string]imagev1.TagEvent{}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if event.Image == id || strings.HasPrefix(event.Image, id) || strings.HasPrefix(event.Image, "sha256:"+id) {
				found[event.Image] = event
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, errors.NewNotFound(imagev1.Resource("imagestreamimages"), name)
	case 1:
	default:
		return nil, errors.NewConflict(imagev1.Resource("imagestreamimages"), name, fmt.Errorf("multiple images match the prefix %q", id))
	}
	for _, event := range found {
		image, err := s.image(ctx, event)
		if err != nil {
			return nil, err
		}
		return &imagev1.ImageStreamImage{ObjectMeta: metadata(stream, streamName+"@"+event.Image, event.Created), Image: image}, nil
	}
	return nil, errors.NewNotFound(imagev1.Resource("imagestreamimages"), name)
}
