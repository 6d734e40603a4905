package apps

import (
	"context"
	"fmt"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/apiserver"
)

// instantiate is the "instantiate" subresource. It starts a deployment for a user.
type instantiate struct {
	apiserver.Action[*appsv1.DeploymentRequest]
	deps apiserver.Deps
}

func (i *instantiate) store(resource string) *registry.Store {
	return i.deps.Stores[appsv1.GroupVersion.WithResource(resource).GroupResource()]
}

// Create starts a deployment and returns the updated configuration. If nothing has changed since
// the latest deployment, Create starts a deployment only if the request sets force.
func (i *instantiate) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := apiserver.RejectDryRun(options); err != nil {
		return nil, err
	}
	request, err := i.About(ctx, name, body, validate, func(r *appsv1.DeploymentRequest) string { return r.Name })
	if err != nil {
		return nil, err
	}
	match, err := i.store("deploymentconfigs").Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	dc := match.(*appsv1.DeploymentConfig)
	if dc.Spec.Paused {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot deploy the paused deployment config %q; resume it first: oc rollout resume dc/%[1]s", name))
	}
	before := dc.Generation
	if request.Latest {
		if dc, err = i.updateImages(ctx, dc, request); err != nil {
			return nil, err
		}
	}
	if !request.Force && dc.Status.LatestVersion > 0 && dc.Generation == before {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("deployment config %q has not changed since deployment #%d; use force to deploy again", name, dc.Status.LatestVersion))
	}
	return i.incrementVersion(ctx, dc)
}

// updateImages sets the template's images to the current images of the tags that the ImageChange
// triggers watch, unless the request excludes these triggers.
func (i *instantiate) updateImages(ctx context.Context, dc *appsv1.DeploymentConfig, req *appsv1.DeploymentRequest) (*appsv1.DeploymentConfig, error) {
	if slices.Contains(req.ExcludeTriggers, appsv1.DeploymentTriggerOnImageChange) {
		return dc, nil
	}
	streams := i.deps.Stores[imagev1.GroupVersion.WithResource("imagestreams").GroupResource()]
	account, check := pull.AccountOf(dc.Namespace, &dc.Spec.Template.Spec), pull.Authorized(i.deps.Authorizer)
	var failure error
	read := pull.Once(func(namespace, name string) (*imagev1.ImageStream, error) {
		if namespace != dc.Namespace {
			allowed, err := check(ctx, account, pull.Get, namespace, name)
			if err == nil && !allowed {
				err = apierrors.NewForbidden(imagev1.Resource("imagestreams"), name, fmt.Errorf("%s", pull.Forbidden(account, namespace, name)))
			}
			if err != nil {
				return nil, err
			}
		}
		stream, err := streams.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
		if err != nil {
			return nil, nil //nolint:nilerr // the trigger waits for the stream
		}
		return stream.(*imagev1.ImageStream), nil
	})
	find := func(namespace, name string) *imagev1.ImageStream {
		stream, err := read(namespace, name)
		if err != nil {
			failure = err
		}
		return stream
	}
	force := func(*appsv1.DeploymentTriggerImageChangeParams) bool { return req.Force }
	if !rollout.UpdateImages(dc.DeepCopy(), force, find) || failure != nil {
		return dc, failure
	}
	changed, _, err := i.store("deploymentconfigs").Update(ctx, dc.Name, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
			current := object.DeepCopyObject().(*appsv1.DeploymentConfig)
			rollout.UpdateImages(current, force, find)
			return current, failure
		}), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return changed.(*appsv1.DeploymentConfig), nil
}

// manual is the cause of deployments that users request.
const manual appsv1.DeploymentTriggerType = "Manual"

// incrementVersion increments status.latestVersion, which starts a deployment.
func (i *instantiate) incrementVersion(ctx context.Context, dc *appsv1.DeploymentConfig) (runtime.Object, error) {
	latest := dc.Status.LatestVersion
	updated, _, err := i.store("deploymentconfigs/status").Update(ctx, dc.Name, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
			current := object.DeepCopyObject().(*appsv1.DeploymentConfig)
			return current, startVersion(current, latest)
		}), nil, nil, false, &metav1.UpdateOptions{})
	return updated, err
}

// startVersion increments dc's latest version if it still equals latest, the version that the
// request is based on. If a controller has already started a deployment, startVersion changes
// nothing. If another user's request has started a deployment, it returns a conflict, because each
// accepted request starts its own deployment.
func startVersion(dc *appsv1.DeploymentConfig, latest int64) error {
	details := dc.Status.Details
	switch {
	case dc.Status.LatestVersion == latest:
		dc.Status.LatestVersion++
		dc.Status.Details = &appsv1.DeploymentDetails{Message: "manual change", Causes: []appsv1.DeploymentCause{{Type: manual}}}
	case details != nil && slices.ContainsFunc(details.Causes, func(c appsv1.DeploymentCause) bool { return c.Type == manual }):
		return apierrors.NewConflict(appsv1.Resource("deploymentconfigs"), dc.Name, fmt.Errorf("another request has started deployment #%d; try again", dc.Status.LatestVersion))
	}
	return nil
}
