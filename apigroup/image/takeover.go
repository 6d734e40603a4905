package image

import (
	"context"
	"fmt"
	"maps"
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// newTags returns the images from other streams that a stream's tags refer to and that the old
// stream did not contain. The keys are the indexes of the tags in the spec.
func newTags(stream, old *imagev1.ImageStream) map[int]string {
	images := map[int]string{}
	for i := range stream.Spec.Tags {
		tag := &stream.Spec.Tags[i]
		items := history(stream, tag.Name)
		if tag.From == nil || tag.From.Kind == dockerKind || len(items) == 0 {
			continue
		}
		if namespace, name, _ := targetOf(stream, tag.From); (namespace != stream.Namespace || name != stream.Name) && !inHistory(old, items[0].Image) {
			images[i] = items[0].Image
		}
	}
	return images
}

// inHistory reports whether the history of any of the stream's tags contains an image. stream can
// be nil.
func inHistory(stream *imagev1.ImageStream, image string) bool {
	if stream == nil {
		return false
	}
	for _, list := range stream.Status.Tags {
		for _, event := range list.Items {
			if event.Image == image {
				return true
			}
		}
	}
	return false
}

// checkTaken rejects images from other streams that are larger than the project's limit.
func (s *streams) checkTaken(ctx context.Context, stream, old *imagev1.ImageStream) (problems field.ErrorList) {
	at := field.NewPath("spec", "tags")
	limited, err := s.limits.strictest(stream.Namespace, imagev1.LimitTypeImage, corev1.ResourceStorage)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	if limited == nil {
		return nil
	}
	images := newTags(stream, old)
	for _, i := range slices.Sorted(maps.Keys(images)) {
		in := at.Key(stream.Spec.Tags[i].Name).Child("from")
		records, err := sizedRecords(ctx, images[i], s.image)
		if err != nil {
			problems = append(problems, field.InternalError(in, err))
			continue
		}
		if err := s.limits.checkImage(stream.Namespace, records...); err != nil {
			problems = append(problems, field.Forbidden(in, err.Error()))
		}
	}
	return problems
}

// sizedRecords returns the records that contain an image's size. This is the image's own record or,
// for an imported index without a size, the records of the index's images.
func sizedRecords(ctx context.Context, id string, read func(context.Context, string) (*imagev1.Image, error)) ([]*imagev1.Image, error) {
	image, err := read(ctx, id)
	if err != nil {
		return nil, err
	}
	description, err := record.Metadata(image)
	if err != nil || description.Size > 0 || len(image.DockerImageManifests) == 0 {
		return []*imagev1.Image{image}, err
	}
	if n := len(image.DockerImageManifests); n > maxImages {
		return nil, fmt.Errorf("image %q is an index of %d images, but the limit is %d in a project whose LimitRange limits the size of images", id, n, maxImages)
	}
	var images []*imagev1.Image
	for n := range image.DockerImageManifests {
		child, err := read(ctx, image.DockerImageManifests[n].Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, child)
	}
	return images, nil
}

// image returns an image's record. If the record does not exist, it returns a record that contains
// only the name. If id is empty, it returns an empty record.
func (s *streams) image(ctx context.Context, id string) (*imagev1.Image, error) {
	if id == "" {
		return &imagev1.Image{}, nil
	}
	object, err := s.deps.Stores[imagev1.Resource("images")].Get(request.WithNamespace(ctx, ""), id, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: id}}, nil
	}
	if err != nil {
		return nil, err
	}
	return object.(*imagev1.Image), nil
}
