package build

import (
	"context"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apiserver"
)

// starter starts builds. Whoever calls it has been checked for the request that leads here; admission looks at the builds themselves.
type starter struct{ deps apiserver.Deps }

func (s starter) store(resource string) *registry.Store {
	return s.deps.Stores[buildv1.Resource(resource)]
}

// config reads a configuration.
func (s starter) config(ctx context.Context, name string) (*buildv1.BuildConfig, error) {
	found, err := s.store("buildconfigs").Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return found.(*buildv1.BuildConfig), nil
}

// build reads a build.
func (s starter) build(ctx context.Context, name string) (*buildv1.Build, error) {
	found, err := s.store("builds").Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return found.(*buildv1.Build), nil
}

// images reads image streams for the builds of a configuration: those of its project, and those of others that its service account may pull from. Another one
// is as if it were not there.
func (s starter) images(ctx context.Context, config *buildv1.BuildConfig) instantiate.Images {
	streams := s.deps.Stores[imagev1.Resource("imagestreams")]
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		if may, err := s.mayPull(ctx, config, namespace, name); err != nil || !may {
			return nil, err
		}
		found, err := streams.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
		if errors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return found.(*imagev1.ImageStream), nil
	}
}

// mayPull says whether the builds of a configuration may pull from an image stream. Their service account is asked, and not whoever starts one: triggers and
// web hooks have no user, and it is the account whose credentials the build has.
func (s starter) mayPull(ctx context.Context, config *buildv1.BuildConfig, namespace, stream string) (bool, error) {
	if namespace == config.Namespace {
		return true, nil
	}
	return pull.Authorized(s.deps.Authorizer)(ctx, instantiate.UserOf(config.Namespace, &config.Spec.CommonSpec), pull.Get, namespace, stream)
}

// start makes the next build of a configuration.
func (s starter) start(ctx context.Context, name string, asked *buildv1.BuildRequest) (*buildv1.Build, error) {
	return starting{s, func(config *buildv1.BuildConfig) instantiate.Images { return s.images(ctx, config) }}.start(ctx, name, asked)
}

// replace stores a changed object, unless it has changed meanwhile.
func (s starter) replace(ctx context.Context, resource string, object apiserver.Object) error {
	_, _, err := s.store(resource).Update(ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(object),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// create asks the server for a build, so that the image policy, quotas and the administrator's own rules see it as they see one that somebody writes himself.
func (s starter) create(ctx context.Context, build *buildv1.Build) (*buildv1.Build, error) {
	client, err := buildclient.NewForConfig(s.deps.Loopback)
	if err != nil {
		return nil, err
	}
	return client.Builds(build.Namespace).Create(ctx, build, metav1.CreateOptions{})
}

// number counts up the last version of a configuration, which may be gone: then it is 0.
func (s starter) number(ctx context.Context, config string) (number int64, err error) {
	if config == "" {
		return 0, nil
	}
	_, _, err = s.store("buildconfigs").Update(ctx, config, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
			next := stored.DeepCopyObject().(*buildv1.BuildConfig)
			if err := startable(next, &buildv1.BuildRequest{}); err != nil {
				return nil, err
			}
			next.Status.LastVersion++
			number = next.Status.LastVersion
			return next, nil
		}), nil, nil, false, &metav1.UpdateOptions{})
	if errors.IsNotFound(err) {
		return 0, nil
	}
	return number, err
}
