package apps

import (
	"context"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// prepare registers the Scale type that autoscalers and `oc scale` use, and the query parameters of
// the log subresource. OpenShift 3 used the Scale of extensions/v1beta1, which current clients do
// not support.
func prepare(scheme *runtime.Scheme) error {
	for _, version := range []string{autoscalingv1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: version}, &autoscalingv1.Scale{})
	}
	return apiserver.RegisterQuery[*appsv1.DeploymentLogOptions](scheme)
}

// scale is the "scale" subresource of deployment configurations. It contains the desired and the
// actual number of pods.
type scale struct {
	store *registry.Store
}

var (
	_ rest.Patcher                  = &scale{}
	_ rest.GroupVersionKindProvider = &scale{}
)

// New implements rest.Storage.
func (s *scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy is a no-op, because the deploymentconfigs resource destroys the store.
func (s *scale) Destroy() {}

// GroupVersionKind returns the autoscaling/v1 Scale kind.
func (s *scale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get returns the scale of a deployment configuration.
func (s *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	object, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(object.(*appsv1.DeploymentConfig)), nil
}

// Update sets the desired number of pods.
func (s *scale) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	updated, _, err := s.store.Update(ctx, name, &scaleUpdate{object}, create, scaleValidation(validate), false, options)
	if err != nil {
		return nil, false, err
	}
	return scaleOf(updated.(*appsv1.DeploymentConfig)), false, nil
}

// scaleUpdate converts an update of the scale to an update of the deployment configuration.
type scaleUpdate struct{ scale rest.UpdatedObjectInfo }

// Preconditions returns the preconditions of the scale update. They also apply to the
// configuration, which has the same UID.
func (s *scaleUpdate) Preconditions() *metav1.Preconditions { return s.scale.Preconditions() }

// UpdatedObject returns the configuration with the new number of pods.
func (s *scaleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	dc, ok := old.DeepCopyObject().(*appsv1.DeploymentConfig)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("scale %T: not a deployment configuration", old))
	}
	changed, err := s.scale.UpdatedObject(ctx, scaleOf(dc))
	if err != nil {
		return nil, err
	}
	scale, ok := changed.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, must be a Scale", changed))
	}
	if errs := apivalidation.ValidateNonnegativeField(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, errs)
	}
	if scale.ResourceVersion != "" {
		dc.ResourceVersion = scale.ResourceVersion // lets the store detect conflicts
	}
	dc.Spec.Replicas = scale.Spec.Replicas
	return dc, nil
}

// scaleValidation validates the scale instead of the configuration, because the scale is the object
// of the request.
func scaleValidation(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	if validate == nil {
		return nil
	}
	return func(ctx context.Context, object, old runtime.Object) error {
		return validate(ctx, scaleOf(object.(*appsv1.DeploymentConfig)), scaleOf(old.(*appsv1.DeploymentConfig)))
	}
}

func scaleOf(dc *appsv1.DeploymentConfig) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: dc.Name, Namespace: dc.Namespace, UID: dc.UID,
			ResourceVersion: dc.ResourceVersion, CreationTimestamp: dc.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: dc.Spec.Replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: dc.Status.Replicas, Selector: labels.FormatLabels(dc.Spec.Selector)},
	}
}
