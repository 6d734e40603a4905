package image

import (
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refuse rejects results that exceed the project's limits: images that are too large, and images
// and tags in excess of the stream's limits. It checks the results in order, so it accepts images
// and tags until a limit is reached.
func (i *imports) refuse(stream *imagev1.ImageStream, results []result) ([]result, error) {
	counted, err := i.limits.countStreams(stream.Namespace)
	if err != nil {
		return nil, err
	}
	allowed, plan := slices.Clone(results), stream
	for n := range allowed {
		r := &allowed[n]
		if r.tag == "" {
			continue
		}
		if err := i.limits.checkImage(stream.Namespace, r.images()...); err != nil {
			r.reject(err)
		}
		if !counted {
			continue
		}
		next := r.in(plan)
		if problems := i.limits.checkStream(next, plan); len(problems) > 0 {
			r.reject(apierrors.NewForbidden(imagev1.Resource("imagestreams"), stream.Name, problems.ToAggregate()))
			r.skipped = slices.ContainsFunc(problems, func(problem *field.Error) bool { return problem.Field == "spec.tags" })
			next = r.in(plan)
		}
		plan = next
	}
	return allowed, nil
}

// in applies the result to a copy of a stream, and returns the copy.
func (r *result) in(stream *imagev1.ImageStream) *imagev1.ImageStream {
	next := stream.DeepCopy()
	point(next, &imagev1.ImageStreamImport{}, []result{*r})
	recordResults(next, []result{*r})
	return next
}

// images returns the fetched images. For an index that was imported completely, it returns the
// index's images instead, because an index has no size.
func (r *result) images() (images []*imagev1.Image) {
	for n := range r.children {
		images = append(images, &r.children[n])
	}
	if r.image != nil && len(images) == 0 {
		images = append(images, r.image)
	}
	return images
}

// reject removes the image from the result. It sets the result's status to the error, unless the
// result already contains an error.
func (r *result) reject(err error) {
	if r.image != nil {
		r.status = outcome(err, r.from)
	}
	r.image, r.children = nil, nil
}

// setResults sets an import's status from its results.
func setResults(request *imagev1.ImageStreamImport, results []result) {
	images := len(request.Status.Images)
	for n := range results {
		if n < images {
			request.Status.Images[n] = results[n].toStatus()
		} else {
			request.Status.Repository.Images[n-images] = results[n].toStatus()
		}
	}
}
