package image

import (
	"context"
	"fmt"
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// streamLayers is the imagestreams/layers subresource, which lists the blobs of a stream's images.
// Users who are allowed to get it can pull from the cluster's registry, and users who are allowed
// to update it can push. PUT exists only for this permission and is a no-op.
type streamLayers struct{ view }

var (
	_ rest.Getter               = &streamLayers{}
	_ rest.SingularNameProvider = &streamLayers{}
)

// New implements rest.Storage.
func (*streamLayers) New() runtime.Object { return &imagev1.ImageStreamLayers{} }

// GetSingularName implements rest.SingularNameProvider.
func (*streamLayers) GetSingularName() string { return "imagestreamlayers" }

// Get lists the layers, configurations and manifests of all images in the history of the stream's
// tags.
func (l *streamLayers) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	stream, err := l.stream(ctx, name)
	if err != nil {
		return nil, err
	}
	list := &imagev1.ImageStreamLayers{
		ObjectMeta: metadata(stream, stream.Name, stream.CreationTimestamp),
		Blobs:      map[string]imagev1.ImageLayerData{}, Images: map[string]imagev1.ImageBlobReferences{},
	}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if event.Image == "" { // the tag has only a pull spec
				continue
			}
			if err := l.add(ctx, list, event.Image); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// add adds an image. For an index, it also adds the index's images if the author of the index had
// access to them. Otherwise, it adds only their names, because the images might be in other
// projects.
func (l *streamLayers) add(ctx context.Context, list *imagev1.ImageStreamLayers, name string) error {
	if _, exists := list.Images[name]; exists {
		return nil
	}
	object, err := l.images.Get(request.WithNamespace(ctx, ""), name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		list.Images[name] = imagev1.ImageBlobReferences{ImageMissing: true}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read image %q: %w", name, err)
	}
	image := object.(*imagev1.Image)
	var blobs imagev1.ImageBlobReferences
	for _, layer := range image.DockerImageLayers {
		blobs.Layers = append(blobs.Layers, layer.Name)
		list.Blobs[layer.Name] = imagev1.ImageLayerData{LayerSize: &layer.LayerSize, MediaType: layer.MediaType}
	}
	description, err := record.Metadata(image)
	if err != nil {
		return err
	}
	if digest.MatchString(description.ID) {
		blobs.Config = &description.ID
		list.Blobs[description.ID] = imagev1.ImageLayerData{}
	}
	for _, child := range image.DockerImageManifests {
		blobs.Manifests = append(blobs.Manifests, child.Digest)
	}
	list.Images[name] = blobs
	if image.Annotations[record.ChildrenProven] != "true" {
		return nil
	}
	for _, child := range slices.Clone(blobs.Manifests) {
		if err := l.add(ctx, list, child); err != nil {
			return err
		}
	}
	return nil
}
