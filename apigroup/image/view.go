package image

import (
	"context"
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// view provides the stores for resources that represent the tags and images of streams.
type view struct {
	streams, status, images *registry.Store
	records                 *recordCounter
}

func newView(deps apiserver.Deps, records *recordCounter) view {
	return view{
		records: records,
		streams: deps.Stores[imagev1.Resource("imagestreams")],
		status:  deps.Stores[imagev1.Resource("imagestreams/status")],
		images:  deps.Stores[imagev1.Resource("images")],
	}
}

// Destroy is a no-op, because other resources destroy the stores.
func (view) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (view) NamespaceScoped() bool { return true }

func (v view) stream(ctx context.Context, name string) (*imagev1.ImageStream, error) {
	object, err := v.streams.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.(*imagev1.ImageStream), nil
}

// image returns an event's image, without the manifest and the configuration. If the image has been
// deleted, the result contains only the name and the pull spec. If the event has no image, the
// result contains only the digest and the pull spec of the event.
func (v view) image(ctx context.Context, event imagev1.TagEvent) (imagev1.Image, error) {
	if event.Image == "" {
		return bareImage(event), nil
	}
	object, err := v.images.Get(request.WithNamespace(ctx, ""), event.Image, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return bareImage(event), nil
	}
	if err != nil {
		return imagev1.Image{}, fmt.Errorf("read image %q: %w", event.Image, err)
	}
	image := *object.(*imagev1.Image).DeepCopy()
	image.DockerImageManifest, image.DockerImageConfig = "", ""
	delete(image.Labels, record.ProjectLabel)
	if event.DockerImageReference != "" {
		image.DockerImageReference = event.DockerImageReference
	}
	return image, nil
}

// bareImage returns an event's image with only its name and pull spec. The name is empty if the
// event has neither an image nor a digest.
func bareImage(event imagev1.TagEvent) imagev1.Image {
	name := event.Image
	if name == "" {
		reference, _ := record.ParseReference(event.DockerImageReference)
		name = reference.Digest
	}
	return imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: name}, DockerImageReference: event.DockerImageReference}
}

// keep stores an image's record for the request's project. If the record exists, keep adds missing
// content. It does so only if the new record contains a manifest or comes from the registry that
// stores the image.
func (v view) keep(ctx context.Context, image *imagev1.Image, dryRun []string) error {
	project := request.NamespaceValue(ctx)
	ctx = context.WithValue(request.WithNamespace(ctx, ""), completion{}, true)
	err := v.create(ctx, project, image, dryRun)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if image.DockerImageManifest == "" && image.Annotations[record.ManifestStored] != "true" {
		return nil
	}
	complete := func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
		next, _ := record.Complete(object.(*imagev1.Image), image)
		return next, nil
	}
	_, _, err = v.images.Update(ctx, image.Name, rest.DefaultUpdatedObjectInfo(nil, complete), nil, rest.ValidateAllObjectUpdateFunc, false,
		&metav1.UpdateOptions{DryRun: dryRun})
	if apierrors.IsNotFound(err) { // a prune has deleted the record
		err = v.create(ctx, project, image, dryRun)
	}
	return err
}

// metadata returns the metadata of an object that represents part of a stream.
func metadata(stream *imagev1.ImageStream, name string, created metav1.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: stream.Namespace, Name: name, UID: stream.UID, ResourceVersion: stream.ResourceVersion,
		CreationTimestamp: created, Labels: stream.Labels,
	}
}

// split splits a name such as "ruby:latest" or "ruby@sha256:..." at the separator. kind describes
// the name in error messages.
func split(name, separator, kind string) (stream, rest string, err error) {
	stream, rest, ok := strings.Cut(name, separator)
	if !ok || stream == "" || rest == "" || separator == ":" && strings.Contains(rest, ":") {
		return "", "", apierrors.NewBadRequest(fmt.Sprintf("%s %q must be of the form <stream_name>%s<%s>", kind, name, separator,
			map[string]string{":": "tag", "@": "id"}[separator]))
	}
	return stream, rest, nil
}

// streamImages serves the imagestreamimages resource, whose objects are named "stream@id". The ID
// can be abbreviated.
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
		{Name: "Docker Ref", Description: "Location of the image in a registry", Value: func(i *imagev1.ImageStreamImage) any { return i.Image.DockerImageReference }},
		{Name: "Updated", Description: "When the stream got the image", Value: func(i *imagev1.ImageStreamImage) any {
			return apiserver.Since(i.CreationTimestamp) + " ago"
		}},
		{Name: "Image Name", Description: "Name of the image", Value: func(i *imagev1.ImageStreamImage) any { return i.Image.Name }},
	})
}

// New implements rest.Storage.
func (*streamImages) New() runtime.Object { return &imagev1.ImageStreamImage{} }

// GetSingularName implements rest.SingularNameProvider.
func (*streamImages) GetSingularName() string { return "imagestreamimage" }

// ShortNames implements rest.ShortNamesProvider.
func (*streamImages) ShortNames() []string { return []string{"isimage"} }

// Get returns an image from the history of any of the stream's tags.
func (s *streamImages) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	streamName, id, err := split(name, "@", "imageStreamImage")
	if err != nil {
		return nil, err
	}
	stream, err := s.stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	matches := map[string]imagev1.TagEvent{}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if event.Image == id || strings.HasPrefix(event.Image, id) || strings.HasPrefix(event.Image, "sha256:"+id) {
				event.DockerImageReference = pull.Spec(stream, tag.Tag, event)
				matches[event.Image] = event
			}
		}
	}
	switch len(matches) {
	case 0:
		return nil, apierrors.NewNotFound(imagev1.Resource("imagestreamimages"), name)
	case 1:
	default:
		return nil, apierrors.NewConflict(imagev1.Resource("imagestreamimages"), name, fmt.Errorf("multiple images match the prefix %q", id))
	}
	for _, event := range matches {
		image, err := s.image(ctx, event)
		if err != nil {
			return nil, err
		}
		return &imagev1.ImageStreamImage{ObjectMeta: metadata(stream, streamName+"@"+event.Image, event.Created), Image: image}, nil
	}
	return nil, apierrors.NewNotFound(imagev1.Resource("imagestreamimages"), name)
}
