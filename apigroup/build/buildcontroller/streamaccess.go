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

// streamAccess checks the access of builds to image streams of other projects. The controllers can
// read all projects, so without this check a build would disclose content of projects that its
// owner cannot read.
type streamAccess struct {
	reviews authorizationclient.SubjectAccessReviewsGetter
}

// allowed reports whether the service account of builds has a right to an image stream. For streams
// of its own project, the registry decides.
func (r streamAccess) allowed(ctx context.Context, project string, spec *buildv1.CommonSpec, verb, namespace, stream string) (bool, error) {
	if namespace == project {
		return true, nil
	}
	return pull.Reviewed(r.reviews)(ctx, instantiate.UserOf(project, spec), verb, namespace, stream)
}

// images returns image streams for builds in a project. A stream that they cannot pull from is nil,
// and forbidden, if set, gets a message for the first such stream. The access check precedes the
// lookup, so a denial does not disclose whether the stream exists.
func (r streamAccess) images(ctx context.Context, streams imagelisters.ImageStreamLister, project string, spec *buildv1.CommonSpec, forbidden *string) instantiate.Images {
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		allowed, err := r.allowed(ctx, project, spec, pull.Get, namespace, name)
		if err != nil {
			return nil, err
		}
		if !allowed {
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
