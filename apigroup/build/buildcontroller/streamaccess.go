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

// streamAccess checks whether builds are allowed to access image streams in other projects. The
// check is necessary because the controllers can read all projects. Without it, a build would
// disclose other projects' content to users who cannot read those projects.
type streamAccess struct {
	reviews authorizationclient.SubjectAccessReviewsGetter
}

// allowed reports whether the builds' service account has a permission on an image stream. It
// allows all streams in the builds' own project, because the registry enforces access to them.
func (r streamAccess) allowed(ctx context.Context, project string, spec *buildv1.CommonSpec, verb, namespace, stream string) (bool, error) {
	if namespace == project {
		return true, nil
	}
	return pull.Reviewed(r.reviews)(ctx, instantiate.UserOf(project, spec), verb, namespace, stream)
}

// images returns a function that looks up image streams for a project's builds. The function
// returns nil for a stream that the builds must not pull from. Unless forbidden is nil, the
// function also stores an error message there for the first of these streams. The function checks
// access before it reads the stream, so a denial does not disclose whether the stream exists.
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
