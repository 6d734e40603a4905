package build

import (
	"context"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// requestAction is the common part of subresources that create a build from a BuildRequest.
type requestAction struct {
	apiserver.Action[*buildv1.BuildRequest]
	buildStore
}

func newRequestAction(deps apiserver.Deps) requestAction {
	return requestAction{apiserver.Action[*buildv1.BuildRequest]{Kind: buildv1.GroupVersion.WithKind("BuildRequest")}, buildStore{deps}}
}

// request validates a request and returns its body.
func (r requestAction) request(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (*buildv1.BuildRequest, error) {
	if err := apiserver.RejectDryRun(options); err != nil {
		return nil, err
	}
	return r.About(ctx, name, body, validate, func(b *buildv1.BuildRequest) string { return b.Name })
}

// instantiateREST is the buildconfigs/instantiate subresource. It instantiates a configuration.
type instantiateREST struct{ requestAction }

var _ rest.NamedCreater = &instantiateREST{}

// Create creates the build.
func (i *instantiateREST) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	req, err := i.request(ctx, name, body, validate, options)
	if err != nil {
		return nil, err
	}
	return i.start(ctx, name, req)
}

// clone is the builds/clone subresource. It creates a build with the inputs of an earlier build.
type clone struct{ requestAction }

var _ rest.NamedCreater = &clone{}

// Create creates the build.
func (c *clone) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	req, err := c.request(ctx, name, body, validate, options)
	if err != nil {
		return nil, err
	}
	old, err := c.build(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := checkOptions(&old.Spec.Strategy, req); err != nil {
		return nil, err
	}
	var created *buildv1.Build
	// Retry with the next number, because a concurrent instantiation can use the same build number.
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsAlreadyExists, func() error {
		number, err := c.incrementVersion(ctx, instantiate.ConfigOf(old))
		if err != nil {
			return err
		}
		created, err = c.create(ctx, instantiate.Clone(old, req, number, rand.String(5)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return created, nil
}
