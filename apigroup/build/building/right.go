package building

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/slipway-platform/slipway/apigroup/build/generate"
)

// The rights to pull from an image stream and to push to it, as the registry asks for them.
const toPull, toPush = "get", "update"

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
	account := generate.UserOf(project, spec)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account.GetName(), Groups: account.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right, Namespace: namespace, Group: imagev1.GroupName, Version: imagev1.GroupVersion.Version,
			Resource: "imagestreams", Subresource: "layers", Name: stream,
		},
	}}
	answer, err := r.reviews.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("check the right of %q to image stream %q in namespace %q: %w", account.GetName(), stream, namespace, err)
	}
	return answer.Status.Allowed, nil
}

// images finds image streams for builds of a specification in a project. One that they may not pull from is as if it were not there; barred is set then.
func (r rights) images(ctx context.Context, streams imagelisters.ImageStreamLister, project string, spec *buildv1.CommonSpec, barred *bool) generate.Images {
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		stream, err := streams.ImageStreams(namespace).Get(name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		may, err := r.may(ctx, project, spec, toPull, namespace, name)
		if barred != nil && !may {
			*barred = true
		}
		if err != nil || !may {
			return nil, err
		}
		return stream, nil
	}
}
