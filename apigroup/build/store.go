package build

import (
	"context"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apiserver"
)

// buildStore reads and writes builds and configurations. It does not authorize requests, because
// the API server has already authorized them. It creates builds through the API server, so that
// admission plugins check them.
type buildStore struct{ deps apiserver.Deps }

func (s buildStore) store(resource string) *registry.Store {
	return s.deps.Stores[buildv1.Resource(resource)]
}

// config returns the BuildConfig with the given name in the namespace of ctx.
func (s buildStore) config(ctx context.Context, name string) (*buildv1.BuildConfig, error) {
	object, err := s.store("buildconfigs").Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.(*buildv1.BuildConfig), nil
}

// build returns the Build with the given name in the namespace of ctx.
func (s buildStore) build(ctx context.Context, name string) (*buildv1.Build, error) {
	object, err := s.store("builds").Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.(*buildv1.Build), nil
}

// images returns a function that looks up the image streams that a configuration's builds can use.
// These are the streams in its project, and the streams in other projects that its service account
// can pull from. For any other stream, the function returns nil.
func (s buildStore) images(ctx context.Context, config *buildv1.BuildConfig) instantiate.Images {
	streams := s.deps.Stores[imagev1.Resource("imagestreams")]
	return instantiate.Images(pull.Once(func(namespace, name string) (*imagev1.ImageStream, error) {
		if allowed, err := s.mayPull(ctx, config, namespace, name); err != nil || !allowed {
			return nil, err
		}
		object, err := streams.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return object.(*imagev1.ImageStream), nil
	}))
}

// mayPull reports whether a configuration's builds can pull from an image stream. It checks the
// service account, not the user who starts the build. The reason is that triggers and webhooks have
// no user, and the build uses the service account's credentials.
func (s buildStore) mayPull(ctx context.Context, config *buildv1.BuildConfig, namespace, stream string) (bool, error) {
	if namespace == config.Namespace {
		return true, nil
	}
	return pull.Authorized(s.deps.Authorizer)(ctx, instantiate.UserOf(config.Namespace, &config.Spec.CommonSpec), pull.Get, namespace, stream)
}

// start instantiates a configuration.
func (s buildStore) start(ctx context.Context, name string, req *buildv1.BuildRequest) (*buildv1.Build, error) {
	return instantiation{s, func(config *buildv1.BuildConfig) instantiate.Images { return s.images(ctx, config) }}.start(ctx, name, req)
}

// replace updates an object. It returns a conflict error if the stored object has changed.
func (s buildStore) replace(ctx context.Context, resource string, object apiserver.Object) error {
	_, _, err := s.store(resource).Update(ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(object),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// create sends a request to the API server to create a build. Therefore, the image policy, quotas
// and the administrator's webhooks apply to the build.
func (s buildStore) create(ctx context.Context, build *buildv1.Build) (*buildv1.Build, error) {
	client, err := buildclient.NewForConfig(s.deps.Loopback)
	if err != nil {
		return nil, err
	}
	return client.Builds(build.Namespace).Create(ctx, build, metav1.CreateOptions{})
}

// incrementVersion increments a configuration's last version and returns the new version, or 0 if
// the configuration does not exist.
func (s buildStore) incrementVersion(ctx context.Context, config string) (number int64, err error) {
	if config == "" {
		return 0, nil
	}
	_, _, err = s.store("buildconfigs").Update(ctx, config, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
			next := object.DeepCopyObject().(*buildv1.BuildConfig)
			if err := checkStartable(next, &buildv1.BuildRequest{}); err != nil {
				return nil, err
			}
			next.Status.LastVersion++
			number = next.Status.LastVersion
			return next, nil
		}), nil, nil, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return number, err
}
