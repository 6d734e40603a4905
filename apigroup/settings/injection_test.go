package settings

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
	"github.com/slipway-platform/slipway/apiserver/storetest"
	"github.com/slipway-platform/slipway/internal/podpreset"
)

// stored returns a preset of a project for pods with the label app=web.
func stored(namespace, name string, env ...corev1.EnvVar) *v1alpha1.PodPreset {
	object := preset(name, env...)
	object.Namespace, object.ResourceVersion = namespace, "7"
	object.Spec.Selector.MatchLabels = map[string]string{"app": "web"}
	return &object
}

// warnings records the warnings of a request.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// admit sends a pod, or another object, through the plugin. It returns the request's warnings.
func admit(t *testing.T, object runtime.Object, plural, subresource, author string, stored ...*v1alpha1.PodPreset) []string {
	t.Helper()
	store := storetest.New(resource(), &v1alpha1.PodPresetList{}, stored...)
	plugin := newInjection(&presets{map[schema.GroupResource]*registry.Store{resource(): store}})
	recorder := &warnings{}
	var groups []string
	if strings.HasPrefix(author, "system:node:") {
		groups = []string{user.NodesGroup}
	}
	ctx := warning.WithWarningRecorder(context.Background(), recorder)
	request := admission.NewAttributesRecord(object, nil, schema.GroupVersionKind{}, "shop", "pod",
		corev1.SchemeGroupVersion.WithResource(plural), subresource, admission.Create, nil, false, &user.DefaultInfo{Name: author, Groups: groups})
	if err := plugin.Admit(ctx, request, nil); err != nil {
		t.Fatal(err)
	}
	return recorder.texts
}

// webPod returns a pod with the label app=web.
func webPod(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
}

func TestNewPodsGetTheirPresets(t *testing.T) {
	first, second := stored("shop", "first", corev1.EnvVar{Name: "HOST", Value: "db"}), stored("shop", "second", corev1.EnvVar{Name: "PORT", Value: "3306"})
	api := stored("shop", "api", corev1.EnvVar{Name: "API"})
	api.Spec.Selector.MatchLabels["app"] = "api"
	foreign := stored("bank", "foreign", corev1.EnvVar{Name: "FOREIGN"})
	mirror := webPod(map[string]string{corev1.MirrorPodAnnotationKey: "1"})
	mirror.Spec.NodeName = "first"
	for name, tt := range map[string]struct {
		pod                   *corev1.Pod
		resource, subresource string
		author                string
		want                  []string // variables of the container
	}{
		"pod of a user":                  {webPod(nil), "pods", "", "alice", []string{"HOST", "PORT"}},
		"pod of a controller":            {webPod(nil), "pods", "", "system:serviceaccount:kube-system:replicaset-controller", []string{"HOST", "PORT"}},
		"pod with the label of another":  {&corev1.Pod{Spec: webPod(nil).Spec}, "pods", "", "alice", nil},
		"excluded pod":                   {webPod(map[string]string{podpreset.Domain + "/exclude": "true"}), "pods", "", "alice", nil},
		"pod that is not excluded":       {webPod(map[string]string{podpreset.Domain + "/exclude": "false"}), "pods", "", "alice", []string{"HOST", "PORT"}},
		"mirror pod":                     {mirror, "pods", "", "system:node:first", nil},
		"build pod of the platform":      {webPod(nil), "pods", "", "system:serviceaccount:openshift-infra:build-controller", nil},
		"subresource":                    {webPod(nil), "pods", "ephemeralcontainers", "alice", nil},
		"pod in a request for other API": {webPod(nil), "podtemplates", "", "alice", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if texts := admit(t, tt.pod, tt.resource, tt.subresource, tt.author, second, foreign, first, api); len(texts) > 0 {
				t.Errorf("warnings %q", texts)
			}
			var variables []string
			for _, variable := range tt.pod.Spec.Containers[0].Env {
				variables = append(variables, variable.Name)
			}
			if !slices.Equal(variables, tt.want) {
				t.Errorf("the variables are %q, want %q", variables, tt.want)
			}
			if applied := podpreset.Applied(tt.pod.Annotations); applied != (tt.want != nil) {
				t.Errorf("the annotations are %v", tt.pod.Annotations)
			}
			if tt.want != nil && tt.pod.Annotations[podpreset.Annotation("first")] != "7" {
				t.Errorf("the annotations lack the version of the preset: %v", tt.pod.Annotations)
			}
		})
	}
}

func TestConflictIsReportedToAuthorAndOnPod(t *testing.T) {
	pod := webPod(nil)
	texts := admit(t, pod, "pods", "", "alice",
		stored("shop", "first", corev1.EnvVar{Name: "HOST", Value: "db"}), stored("shop", "second", corev1.EnvVar{Name: "HOST", Value: "other"}))
	const reason = `add environment variable of pod preset "second" to container "main": "HOST" exists with another value`
	if len(texts) != 1 || !strings.Contains(texts[0], reason) {
		t.Errorf("the warnings are %q", texts)
	}
	if got := pod.Annotations[conflictAnnotation]; got != reason {
		t.Errorf("the annotation is %q", got)
	}
	if podpreset.Applied(pod.Annotations) || len(pod.Spec.Containers[0].Env) > 0 {
		t.Errorf("the pod has presets: %+v", pod)
	}
}

func TestInvalidSelectorRejectsPods(t *testing.T) {
	broken := stored("shop", "broken")
	broken.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
	store := storetest.New(resource(), &v1alpha1.PodPresetList{}, broken)
	p := &presets{map[schema.GroupResource]*registry.Store{resource(): store}}
	if _, err := p.of(t.Context(), "shop", webPod(nil)); err == nil || !strings.Contains(err.Error(), `parse selector of pod preset "broken"`) {
		t.Errorf("got %v", err)
	}
}
