// Package selectorlimit limits the size of the selectors that controllers use to select pods.
//
// Whenever a pod without a controller changes, several controllers parse and evaluate the selectors
// of all objects in the pod's namespace before they process changes in other namespaces. Large
// selectors would therefore delay other projects.
package selectorlimit

import (
	"context"
	"fmt"
	"io"

	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/labelselector"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/SelectorLimit"

// maxSelector is the maximum number of labels, requirements and values in a selector. A
// ReplicaSet's selector can have maxAdded more, because the Deployment controller adds a label.
const maxSelector, maxAdded = 100, 10

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) {
			return plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
		},
	}}}
}

type plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = plugin{}

// Validate rejects an object whose selector is too large. An object that already exceeds the limit
// can be updated, but its selector cannot grow.
func (plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	limit := maxSelector
	if _, ok := a.GetObject().(*kubeappsv1.ReplicaSet); ok {
		limit += maxAdded
	}
	size := labelselector.Size(selectorOf(a.GetObject()))
	if size <= limit || size <= labelselector.Size(selectorOf(a.GetOldObject())) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("spec.selector has %d labels, requirements and values, but the limit is %d; select the pods by one label", size, limit))
}

// selectorOf returns an object's selector. It returns nil if the plugin does not limit objects of
// this kind.
func selectorOf(object runtime.Object) *metav1.LabelSelector {
	switch object := object.(type) {
	case *kubeappsv1.ReplicaSet:
		return object.Spec.Selector
	case *kubeappsv1.Deployment:
		return object.Spec.Selector
	case *kubeappsv1.StatefulSet:
		return object.Spec.Selector
	case *kubeappsv1.DaemonSet:
		return object.Spec.Selector
	case *batchv1.Job:
		return object.Spec.Selector
	case *policyv1.PodDisruptionBudget:
		return object.Spec.Selector
	}
	return nil
}
