package apps

import (
	"context"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/errors"
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

// prepare registers the scale that autoscalers and `oc scale` use (OpenShift 3 answered with the one of
// extensions/v1beta1, which current clients no longer know), and the query of a log.
func prepare(scheme *runtime.Scheme) error {
	for _, version := range []string{autoscalingv1.SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: version}, &autoscalingv1.Scale{})
	}
	return apiserver.RegisterQuery[*appsv1.DeploymentLogOptions](scheme)
}

// scale is the subresource "scale" of deployment configurations: the wanted number of pods, and the actual one.
type scale struct {
	store *registry.Store
}

var (
	_ rest.Patcher                  = &scale{}
	_ rest.GroupVersionKindProvider = &scale{}
)

// New makes an empty scale.
func (s *scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy leaves the connection to the resource itself, which shares it.
func (s *scale) Destroy() {}

// GroupVersionKind is the scale's own.
func (s *scale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get reads the scale of a deployment configuration.
func (s *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(found.(*appsv1.DeploymentConfig)), nil
}

// Update sets the wanted number of pods.
func (s *scale) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	updated, _, err := s.store.Update(ctx, name, &scaled{object}, create, scaledValidation(validate), false, options)
	if err != nil {
		return nil, false, err
	}
	return scaleOf(updated.(*appsv1.DeploymentConfig)), false, nil
}

// scaled turns a change of the scale into one of the deployment configuration.
type scaled struct{ scale rest.UpdatedObjectInfo }

// Preconditions are those of the scale, whose identity is the configuration's.
func (s *scaled) Preconditions() *metav1.Preconditions { return s.scale.Preconditions() }

// UpdatedObject is the configuration with the new number.
func (s *scaled) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	dc, ok := old.DeepCopyObject().(*appsv1.DeploymentConfig)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("scale %T: not a deployment configuration", old))
	}
	changed, err := s.scale.UpdatedObject(ctx, scaleOf(dc))
	if err != nil {
		return nil, err
	}
	wanted, ok := changed.(*autoscalingv1.Scale)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("scale by %T: not a scale", changed))
	}
	if problems := apivalidation.ValidateNonnegativeField(int64(wanted.Spec.Replicas), field.NewPath("spec", "replicas")); len(problems) > 0 {
		return nil, errors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), wanted.Name, problems)
	}
	if wanted.ResourceVersion != "" {
		dc.ResourceVersion = wanted.ResourceVersion // a conflict is for the store to find
	}
	dc.Spec.Replicas = wanted.Spec.Replicas
	return dc, nil
}

// scaledValidation shows admission the scale, which is what the request changes.
func scaledValidation(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
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
