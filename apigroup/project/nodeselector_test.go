package project

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/scope"
)

func newTestSelector(t *testing.T) *nodeSelector {
	t.Helper()
	project := func(name string, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	settings, err := NewSettings(Options{DefaultNodeSelector: "zone=default"})
	if err != nil {
		t.Fatal(err)
	}
	n := newNodeSelector(settings)
	n.namespaces = namespaceLister(t, project("plain", nil), project("own", map[string]string{projectv1.ProjectNodeSelector: "zone=east,disk=ssd"}),
		project("everywhere", map[string]string{projectv1.ProjectNodeSelector: ""}), project("broken", map[string]string{projectv1.ProjectNodeSelector: "zone in (a)"}))
	return n
}

func TestPodsGetNodeSelectorOfProject(t *testing.T) {
	for _, tt := range []struct {
		name, namespace string
		selector, want  map[string]string
		allowed         bool
	}{
		{"selector of the cluster", "plain", nil, map[string]string{"zone": "default"}, true},
		{"selector of the project", "own", nil, map[string]string{"zone": "east", "disk": "ssd"}, true},
		{"empty selector of the project", "everywhere", nil, nil, true},
		{"other keys of the pod are kept", "plain", map[string]string{"cpu": "fast"}, map[string]string{"zone": "default", "cpu": "fast"}, true},
		{"the same value", "own", map[string]string{"zone": "east"}, map[string]string{"zone": "east", "disk": "ssd"}, true},
		{"another value", "own", map[string]string{"zone": "west"}, map[string]string{"zone": "west"}, false},
		{"invalid annotation", "broken", nil, nil, false},
		{"missing project", "none", nil, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: tt.selector}}
			err := newTestSelector(t).Admit(t.Context(), attributesOf("pods", "", tt.namespace, pod, "alice"), nil)
			if (err == nil) != tt.allowed {
				t.Errorf("got error %v, want allowed %v", err, tt.allowed)
			}
			if diff := cmp.Diff(tt.want, pod.Spec.NodeSelector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeSelectorIgnoresMirrorPodsAndSubresources(t *testing.T) {
	mirror := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}, Spec: corev1.PodSpec{NodeName: "one"}}
	for name, attributes := range map[string]func() error{
		"mirror pod": func() error {
			return newTestSelector(t).Admit(t.Context(), attributesOf("pods", "", "own", mirror, "system:node:one"), nil)
		},
		"subresource": func() error {
			return newTestSelector(t).Admit(t.Context(), attributesOf("pods", "binding", "own", mirror, "system:node:one"), nil)
		},
	} {
		if err := attributes(); err != nil || mirror.Spec.NodeSelector != nil {
			t.Errorf("%s: got selector %v, error %v", name, mirror.Spec.NodeSelector, err)
		}
	}
	if err := newTestSelector(t).Admit(t.Context(), attributesOf("pods", "", "own", mirror, "alice"), nil); err != nil || mirror.Spec.NodeSelector == nil {
		t.Errorf("mirror pod of a user: got selector %v, error %v", mirror.Spec.NodeSelector, err)
	}
}

func TestValidateRejectsPodsWithoutProjectSelector(t *testing.T) {
	for name, tt := range map[string]struct {
		selector map[string]string
		allowed  bool
	}{
		"complete": {map[string]string{"zone": "east", "disk": "ssd"}, true}, "incomplete": {map[string]string{"zone": "east"}, false}, "none": {nil, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: tt.selector}}
		if err := newTestSelector(t).Validate(t.Context(), attributesOf("pods", "", "own", pod, "alice"), nil); (err == nil) != tt.allowed {
			t.Errorf("%s: got error %v, want allowed %v", name, err, tt.allowed)
		}
	}
}

func TestInvalidDefaultNodeSelectorIsRejected(t *testing.T) {
	if _, err := NewSettings(Options{DefaultNodeSelector: "zone in (a)"}); err == nil {
		t.Error("a selector with an operator is accepted")
	}
}

func TestScopesLimitVisibleProjects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		scopes []string
		limits bool
		shop   bool
	}{
		{"no scopes", nil, false, false},
		{"all permissions", []string{"user:full"}, false, false},
		{"role in every project", []string{"role:view:*"}, false, false},
		{"role in a project", []string{"role:view:shop"}, true, true},
		{"role in another project", []string{"role:view:blog"}, true, false},
		{"no permission for projects", []string{"user:info"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, text := range tt.scopes {
				if err := scope.Validate(text); err != nil {
					t.Fatal(err)
				}
			}
			limit := scoped(tt.scopes)
			if (limit != nil) != tt.limits || limit != nil && limit("shop") != tt.shop {
				t.Errorf("got limit %v, want %v", limit != nil, tt.limits)
			}
		})
	}
}
