package image

import (
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refuse takes from results the images that the project's limits do not allow: those that are too large and, in their order, those of which the stream
// would have too many.
func (i *imports) refuse(stream *imagev1.ImageStream, results []result) ([]result, error) {
	counted, err := i.limits.countStreams(stream.Namespace)
	if err != nil {
		return nil, err
	}
	allowed, planned := slices.Clone(results), stream
	for n := range allowed {
		r := &allowed[n]
		if r.tag == "" {
			continue
		}
		if err := i.limits.checkImage(stream.Namespace, r.images()...); err != nil {
			r.refused(err)
		}
		if !counted {
			continue
		}
		next := r.in(planned)
		if problems := i.limits.checkStream(next, planned); len(problems) > 0 {
			r.refused(errors.NewForbidden(imagev1.Resource("imagestreams"), stream.Name, problems.ToAggregate()))
			r.unpointed = slices.ContainsFunc(problems, func(problem *field.Error) bool { return problem.Field == "spec.tags" })
			next = r.in(planned)
		}
		planned = next
	}
	return allowed, nil
}

// in is the stream as it becomes with a result.
func (r *result) in(stream *imagev1.ImageStream) *imagev1.ImageStream {
	next := stream.DeepCopy()
	point(next, &imagev1.ImageStreamImport{}, []result{*r})
	recordResults(next, []result{*r})
	return next
}

// images are those that were found; of an index its images, since it has no size of its own.
func (r *result) images() (images []*imagev1.Image) {
	for n := range r.children {
		images = append(images, &r.children[n])
	}
	if r.image != nil && len(images) == 0 {
		images = append(images, r.image)
	}
	return images
}

// refused drops the image, and says why; what was not found has its reason already.
func (r *result) refused(err error) {
	if r.image != nil {
		r.status = outcome(err, r.from)
	}
	r.image, r.children = nil, nil
}

// tellAll tells in the status of an import what became of its images.
func tellAll(wanted *imagev1.ImageStreamImport, results []result) {
	images := len(wanted.Status.Images)
	for n := range results {
		if n < images {
			wanted.Status.Images[n] = results[n].tell()
		} else {
			wanted.Status.Repository.Images[n-images] = results[n].tell()
		}
	}
}
