package image

import (
	"fmt"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apiserver"
)

// limits enforces projects' LimitRanges: the size of images (openshift.io/Image, storage), and the
// number of an image stream's references and images (openshift.io/ImageStream,
// openshift.io/image-tags and openshift.io/images).
//
// Source: OpenShift Container Platform 3.11, limit ranges for images and image streams.
type limits struct {
	ranges corelisters.LimitRangeLister // reads the API server's cache
}

func newLimits(deps apiserver.Deps) limits {
	return limits{deps.Informers.Core().V1().LimitRanges().Lister()}
}

// limit is a maximum that is set by a LimitRange.
type limit struct {
	limitRange string
	kind       corev1.LimitType
	of         corev1.ResourceName
	maximum    resource.Quantity
}

// exceeded returns the error message for a request that exceeds the limit. would is the total
// usage after the request.
func (l *limit) exceeded(would *resource.Quantity) string {
	return fmt.Sprintf("maximum %s usage per %s is %s by LimitRange %q, but it would be %s", l.of, l.kind, l.maximum.String(), l.limitRange, would)
}

// strictest returns the project's lowest limit on a resource, or nil.
func (l limits) strictest(namespace string, kind corev1.LimitType, of corev1.ResourceName) (*limit, error) {
	all, err := l.ranges.LimitRanges(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list LimitRanges of project %q: %w", namespace, err)
	}
	var existing *limit
	for _, limitRange := range all {
		for _, itemLimit := range limitRange.Spec.Limits {
			maximum, limited := itemLimit.Max[of]
			if itemLimit.Type == kind && limited && (existing == nil || maximum.Cmp(existing.maximum) < 0) {
				existing = &limit{limitRange.Name, kind, of, maximum}
			}
		}
	}
	return existing, nil
}

// checkImage rejects images that are larger than the project's limit. If the project has a limit,
// it also rejects images of unknown size.
func (l limits) checkImage(namespace string, images ...*imagev1.Image) error {
	limit, err := l.strictest(namespace, imagev1.LimitTypeImage, corev1.ResourceStorage)
	if err != nil || limit == nil {
		return err
	}
	for _, image := range images {
		description, err := record.Metadata(image)
		if err != nil {
			return err
		}
		would := resource.NewQuantity(description.Size, resource.BinarySI)
		if description.Size <= 0 {
			return apierrors.NewForbidden(imagev1.Resource("images"), image.Name, fmt.Errorf("its size is unknown, but LimitRange %q limits it", limit.limitRange))
		}
		if would.Cmp(limit.maximum) > 0 {
			return apierrors.NewForbidden(imagev1.Resource("images"), image.Name, fmt.Errorf("%s", limit.exceeded(would)))
		}
	}
	return nil
}

// countStreams reports whether the project limits the number of tags or images in image streams.
func (l limits) countStreams(namespace string) (bool, error) {
	for _, of := range []corev1.ResourceName{imagev1.ResourceImageStreamTags, imagev1.ResourceImageStreamImages} {
		if limit, err := l.strictest(namespace, imagev1.LimitTypeImageStream, of); err != nil || limit != nil {
			return limit != nil, err
		}
	}
	return false, nil
}

// checkStream returns errors if a changed stream exceeds its project's limits. A stream that
// already exceeds a limit can change, but must not grow. old is nil for a new stream.
func (l limits) checkStream(stream, old *imagev1.ImageStream) (problems field.ErrorList) {
	for _, counted := range []struct {
		of    corev1.ResourceName
		at    string
		count func(*imagev1.ImageStream) int64
	}{
		{imagev1.ResourceImageStreamTags, "spec", referencesOf}, {imagev1.ResourceImageStreamImages, "status", imagesOf},
	} {
		at := field.NewPath(counted.at, "tags")
		limit, err := l.strictest(stream.Namespace, imagev1.LimitTypeImageStream, counted.of)
		if err != nil {
			problems = append(problems, field.InternalError(at, err))
			continue
		}
		if limit == nil {
			continue
		}
		count := counted.count(stream)
		would := resource.NewQuantity(count, resource.DecimalSI)
		if would.Cmp(limit.maximum) > 0 && (old == nil || count > counted.count(old)) {
			problems = append(problems, field.Forbidden(at, limit.exceeded(would)))
		}
	}
	return problems
}

// referencesOf returns the number of distinct targets of a stream's tags.
func referencesOf(stream *imagev1.ImageStream) int64 {
	seen := map[corev1.ObjectReference]bool{}
	for _, tag := range stream.Spec.Tags {
		if tag.From == nil {
			continue
		}
		from := corev1.ObjectReference{Kind: tag.From.Kind, Name: tag.From.Name}
		if from.Kind != dockerKind {
			if from.Namespace = tag.From.Namespace; from.Namespace == "" {
				from.Namespace = stream.Namespace
			}
			// A name without a colon refers to a tag of the same stream.
			if from.Kind == tagKind && !strings.Contains(from.Name, ":") {
				from.Name = stream.Name + ":" + from.Name
			}
		}
		seen[from] = true
	}
	return int64(len(seen))
}

// imagesOf returns the number of distinct images in the history of a stream's tags.
func imagesOf(stream *imagev1.ImageStream) int64 {
	seen := map[string]bool{}
	for _, list := range stream.Status.Tags {
		for _, event := range list.Items {
			name := event.Image
			if name == "" {
				name = event.DockerImageReference
			}
			seen[name] = true
		}
	}
	return int64(len(seen))
}
