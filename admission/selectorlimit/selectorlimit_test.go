package selectorlimit

import (
	"testing"

	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// selector returns a selector of the given size, which must be at least 3.
func selector(size int) *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "web"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Values: make([]string, size-2)}},
	}
}

func budget(size int) runtime.Object {
	return &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector(size)}}
}

func TestSelectorsAreLimited(t *testing.T) {
	const large = maxSelector + 1
	for name, tt := range map[string]struct {
		object, old runtime.Object
		ok          bool
	}{
		"budget":                         {budget(maxSelector), nil, true},
		"budget with a large selector":   {budget(large), nil, false},
		"budget that grows":              {budget(large), budget(3), false},
		"budget from an earlier version": {budget(large), budget(large), true},
		"budget without a selector":      {&policyv1.PodDisruptionBudget{}, nil, true},
		"deployment":                     {&kubeappsv1.Deployment{Spec: kubeappsv1.DeploymentSpec{Selector: selector(large)}}, nil, false},
		"replica set of a deployment":    {&kubeappsv1.ReplicaSet{Spec: kubeappsv1.ReplicaSetSpec{Selector: selector(large)}}, nil, true},
		"replica set":                    {&kubeappsv1.ReplicaSet{Spec: kubeappsv1.ReplicaSetSpec{Selector: selector(large + maxAdded)}}, nil, false},
		"stateful set":                   {&kubeappsv1.StatefulSet{Spec: kubeappsv1.StatefulSetSpec{Selector: selector(large)}}, nil, false},
		"daemon set":                     {&kubeappsv1.DaemonSet{Spec: kubeappsv1.DaemonSetSpec{Selector: selector(large)}}, nil, false},
		"job":                            {&batchv1.Job{Spec: batchv1.JobSpec{Selector: selector(large)}}, nil, false},
		"an object without a selector":   {&corev1.ConfigMap{}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := admission.NewAttributesRecord(tt.object, tt.old, schema.GroupVersionKind{}, "shop", "x", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
			if err := (plugin{}).Validate(t.Context(), attributes, nil); (err == nil) != tt.ok {
				t.Errorf("error %v, want admitted: %v", err, tt.ok)
			}
		})
	}
}
