package replicalimit

import (
	"math"
	"strings"
	"testing"

	kubeappsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"
)

// setOf returns a StatefulSet with the given number of replicas, and with the given number of empty
// environment variables in its template.
func setOf(replicas int32, variables int) *kubeappsv1.StatefulSet {
	set := &kubeappsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "database"}, Spec: kubeappsv1.StatefulSetSpec{Replicas: &replicas}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Env: make([]corev1.EnvVar, variables)}}
	return set
}

func TestReplicasAreLimited(t *testing.T) {
	scale := func(replicas int32) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	}
	one := setOf(1, 0)
	withoutNumber := setOf(1, 0)
	withoutNumber.Spec.Replicas = nil
	for name, tt := range map[string]struct {
		stored      *kubeappsv1.StatefulSet
		object, old runtime.Object
		subresource string
		ok          bool
	}{
		"a thousand":                       {nil, setOf(1000, 0), nil, "", true},
		"no replicas":                      {nil, withoutNumber, nil, "", true},
		"maximum replicas":                 {nil, setOf(math.MaxInt32, 0), nil, "", false},
		"a large template":                 {nil, setOf(200, 20_000), nil, "", false},
		"few replicas of a large template": {nil, setOf(3, 20_000), nil, "", true},
		"update to more replicas":          {one, setOf(math.MaxInt32, 0), one, "", false},
		"update to a larger template":      {one, setOf(1000, 20_000), setOf(1000, 0), "", false},
		"update to fewer replicas":         {one, setOf(1_000_000, 0), setOf(2_000_000, 0), "", true},
		"scale":                            {one, scale(1000), scale(1), "scale", true},
		"too large a scale":                {one, scale(math.MaxInt32), scale(1), "scale", false},
		"scale, large template":            {setOf(1, 20_000), scale(1000), scale(1), "scale", false},
		"scale of a missing set":           {nil, scale(math.MaxInt32), scale(1), "scale", true},
		"status":                           {one, setOf(math.MaxInt32, 0), one, "status", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tt.stored != nil {
				client = fake.NewClientset(tt.stored)
			}
			p := newPlugin()
			p.SetExternalKubeClientSet(client)
			operation := admission.Create
			if tt.old != nil {
				operation = admission.Update
			}
			err := p.Validate(t.Context(), admission.NewAttributesRecord(tt.object, tt.old, schema.GroupVersionKind{}, "shop", "database",
				kubeappsv1.SchemeGroupVersion.WithResource("statefulsets"), tt.subresource, operation, nil, false, nil), nil)
			if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "at most") {
				t.Errorf("got %v, want success: %t", err, tt.ok)
			}
		})
	}
}

func TestPluginNeedsClient(t *testing.T) {
	if err := newPlugin().ValidateInitialization(); err == nil {
		t.Error("no error without a client")
	}
}
