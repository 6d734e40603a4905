package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// insecureRepository is an image stream annotation. If its value is "true", the certificates of the
// registries that store the stream's images are not verified.
const insecureRepository = "openshift.io/image.insecureRepository"

// location specifies where an image in a stream is stored.
type location struct {
	digest string
	source source
	// unproven means that the stream references the image without proof that the project may use it.
	// In this case, only the location in the stream is used, and Image objects are ignored.
	unproven bool
}

// find looks up a tag or a digest in a stream. ok is false if the stream or the image does not
// exist.
func (s *server) find(ctx context.Context, t target) (at location, ok bool, err error) {
	free, err := s.lookups.take(ctx)
	if err != nil {
		return location{}, false, err
	}
	defer free()
	stream, err := s.images.ImageStreams(t.namespace).Get(ctx, t.stream, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return location{}, false, nil
	}
	if err != nil {
		return location{}, false, fmt.Errorf("read image stream %q: %w", t.repository(), err)
	}
	for _, tag := range stream.Status.Tags {
		for i, event := range tag.Items {
			id, unproven := event.Image, event.Image == ""
			if unproven {
				id = digestIn(event)
			}
			if id == "" || t.reference != id && (t.reference != tag.Tag || i > 0) {
				continue
			}
			at, err := s.sourceOf(stream, tag.Tag, event)
			return location{id, at, unproven}, err == nil, err
		}
	}
	if !strings.Contains(t.reference, ":") {
		return location{}, false, nil
	}
	return s.findInIndexes(ctx, stream, t.reference)
}

// findInIndexes looks up an image in the indexes that the stream contains.
func (s *server) findInIndexes(ctx context.Context, stream *imagev1.ImageStream,
	digest string) (location, bool, error) {
	content, err := s.images.ImageStreams(stream.Namespace).Layers(ctx, stream.Name, metav1.GetOptions{})
	if err != nil {
		return location{}, false, fmt.Errorf("read layers of image stream %q: %w", stream.Namespace+"/"+stream.Name, err)
	}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if slices.Contains(content.Images[event.Image].Manifests, digest) {
				_, verified := content.Images[digest]
				at, err := s.sourceOf(stream, tag.Tag, event)
				return location{digest, at, !verified}, err == nil, err
			}
		}
	}
	return location{}, false, nil
}

// findBlob returns the location of an image that is in the stream and contains the blob.
func (s *server) findBlob(ctx context.Context, t target) (source, bool, error) {
	if at, ok := s.blobs.get(blobOf{t.repository(), t.digest}); ok {
		return at, true, nil
	}
	stream, err := s.images.ImageStreams(t.namespace).Get(ctx, t.stream, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return source{}, false, nil
	}
	if err != nil {
		return source{}, false, fmt.Errorf("read image stream %q: %w", t.repository(), err)
	}
	content, err := s.images.ImageStreams(t.namespace).Layers(ctx, t.stream, metav1.GetOptions{})
	if err != nil {
		return source{}, false, fmt.Errorf("read layers of image stream %q: %w", t.repository(), err)
	}
	for _, tag := range stream.Status.Tags {
		for _, event := range tag.Items {
			if !holds(content, event.Image, t.digest) {
				continue
			}
			at, err := s.sourceOf(stream, tag.Tag, event)
			return at, err == nil, err
		}
	}
	return source{}, false, nil
}

// holds reports whether a blob is a layer or the configuration of an image. If the image is an
// index, holds checks the index's images instead.
func holds(content *imagev1.ImageStreamLayers, image, digest string) bool {
	blobs := content.Images[image]
	if slices.Contains(blobs.Layers, digest) || blobs.Config != nil && *blobs.Config == digest {
		return true
	}
	return slices.ContainsFunc(blobs.Manifests, func(child string) bool { return holds(content, child, digest) })
}

// digestIn returns the digest in a tag event's image reference, or "" if the reference has no
// digest.
func digestIn(event imagev1.TagEvent) string {
	// Ignore the error, because sourceOf reports an invalid reference.
	parsed, _ := record.ParseReference(event.DockerImageReference)
	return parsed.Digest
}

// sourceOf returns the location of an image in the stream.
func (s *server) sourceOf(stream *imagev1.ImageStream, tag string,
	event imagev1.TagEvent) (source, error) {
	reference, err := record.ParseReference(event.DockerImageReference)
	if err != nil {
		return source{}, err
	}
	if reference.Registry == registryname.Address || slices.Contains(s.Hosts, reference.Registry) {
		return source{repository: reference.Repository}, nil
	}
	at := source{remote: reference.Name(), insecure: stream.Annotations[insecureRepository] == "true"}
	for _, desired := range stream.Spec.Tags {
		if desired.Name == tag && desired.ImportPolicy.Insecure {
			at.insecure = true
		}
	}
	return at, nil
}
