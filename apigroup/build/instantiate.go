package build

import (
	"context"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// requested is what the subresources share that make a build for a BuildRequest.
type requested struct {
	apiserver.Action[*buildv1.BuildRequest]
	starter
}

func newRequested(deps apiserver.Deps) requested {
	return requested{apiserver.Action[*buildv1.BuildRequest]{Kind: buildv1.GroupVersion.WithKind("BuildRequest")}, starter{deps}}
}

func (r requested) asked(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc) (*buildv1.BuildRequest, error) {
	return r.About(ctx, name, body, validate, func(b *buildv1.BuildRequest) string { return b.Name })
}

// instantiateREST is the subresource buildconfigs/instantiate: it starts a build of a configuration.
type instantiateREST struct{ requested }

var _ rest.NamedCreater = &instantiateREST{}

// Create makes the build.
func (i *instantiateREST) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, err := i.asked(ctx, name, body, validate)
	if err != nil {
		return nil, err
	}
	return i.start(ctx, name, asked)
}

// clone is the subresource builds/clone: it does a build again, from what it was made of then.
type clone struct{ requested }

var _ rest.NamedCreater = &clone{}

// Create makes the build.
func (c *clone) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked, err := c.asked(ctx, name, body, validate)
	if err != nil {
		return nil, err
	}
	old, err := c.build(ctx, name)
	if err != nil {
		return nil, err
	}
	var made *buildv1.Build
	err = retry.OnError(retry.DefaultBackoff, errors.IsAlreadyExists, func() error { // a build that starts may have taken the number
		number, err := c.number(ctx, instantiate.ConfigOf(old))
		if err != nil {
			return err
		}
		made, err = c.create(ctx, instantiate.Clone(old, asked, number, rand.String(5)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}
