package ownerlimit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

func owned(number int) runtime.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, number)}}
}

func TestOwnerReferencesAreLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		object, old runtime.Object
		ok          bool
	}{
		"no owner":                {owned(0), nil, true},
		"as many as allowed":      {owned(maxOwners), nil, true},
		"one too many":            {owned(maxOwners + 1), nil, false},
		"added by an update":      {owned(maxOwners + 1), owned(1), false},
		"from an earlier version": {owned(maxOwners + 1), owned(maxOwners + 1), true},
		"more than before":        {owned(maxOwners + 2), owned(maxOwners + 1), false},
		"options":                 {&corev1.PodExecOptions{}, nil, true},
		"no object":               {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := admission.NewAttributesRecord(tt.object, tt.old, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "shop", "x",
				corev1.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create, nil, false, nil)
			err := plugin{}.Validate(t.Context(), attributes, nil)
			if (err == nil) != tt.ok {
				t.Errorf("error %v, want admitted: %v", err, tt.ok)
			}
		})
	}
}
