package buildcontroller

import (
	"context"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// rights answers what the service account of builds may do with image streams of other projects. The controllers may see all: without this, a build would tell its
// owner what is in a project that he cannot look into.
type rights struct {
	reviews authorizationclient.SubjectAccessReviewsGetter
}

// may says whether builds of a specification in a project have a right to an image stream. In their own project, the registry decides.
func (r rights) may(ctx context.Context, project string, spec *buildv1.CommonSpec, right, namespace, stream string) (bool, error) {
	if namespace == project {
		return true, nil
	}
	return pull.Reviewed(r.reviews)(ctx, instantiate.UserOf(project, spec), right, namespace, stream)
}

// images finds image streams for builds of a specification in a project. A stream that they may not pull from is as if it did not exist;
// forbidden, if set, gets the first of them. The right is checked before the stream is read, so that a refusal says nothing about it.
func (r rights) images(ctx context.Context, streams imagelisters.ImageStreamLister, project string, spec *buildv1.CommonSpec, forbidden *string) instantiate.Images {
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		may, err := r.may(ctx, project, spec, pull.Get, namespace, name)
		if err != nil {
			return nil, err
		}
		if !may {
			if forbidden != nil && *forbidden == "" {
				*forbidden = pull.Forbidden(instantiate.UserOf(project, spec), namespace, name)
			}
			return nil, nil
		}
		stream, err := streams.ImageStreams(namespace).Get(name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return stream, err
	}
}
