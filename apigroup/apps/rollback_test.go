package apps

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// deployed returns a configuration whose latest version is version, with an automatic ImageChange
// trigger.
func deployed(image string, version int64) *appsv1.DeploymentConfig {
	dc := valid()
	dc.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	dc.Spec.Replicas, dc.Status.LatestVersion = int32(version), version
	dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{Automatic: true}}}
	return dc
}

func TestRollbackCopiesRequestedSettings(t *testing.T) {
	rollback := &appsv1.DeploymentConfigRollback{Name: "web", UpdatedAnnotations: map[string]string{"why": "broken"}, Spec: appsv1.DeploymentConfigRollbackSpec{IncludeTemplate: true}}
	got := applyRollback(deployed("new", 2), deployed("old", 1), rollback)
	if got.Spec.Template.Spec.Containers[0].Image != "old" || got.Spec.Replicas != 2 || got.Annotations["why"] != "broken" {
		t.Errorf("rolled back to %+v", got)
	}
	if got.Spec.Triggers[0].ImageChangeParams.Automatic {
		t.Error("the ImageChange trigger is still automatic")
	}
	rollback.Spec = appsv1.DeploymentConfigRollbackSpec{IncludeReplicationMeta: true}
	if got := applyRollback(deployed("new", 2), deployed("old", 1), rollback); got.Spec.Template.Spec.Containers[0].Image != "new" || got.Spec.Replicas != 1 {
		t.Errorf("with the number of pods, rolled back to %+v", got)
	}
}

func TestRollbackTarget(t *testing.T) {
	from := func(name string) appsv1.DeploymentConfigRollbackSpec {
		return appsv1.DeploymentConfigRollbackSpec{From: corev1.ObjectReference{Name: name}}
	}
	for name, tt := range map[string]struct {
		latest int64
		spec   appsv1.DeploymentConfigRollbackSpec
		want   string
	}{
		"the previous deployment": {4, appsv1.DeploymentConfigRollbackSpec{}, "web-3"},
		"a revision":              {4, appsv1.DeploymentConfigRollbackSpec{Revision: 2}, "web-2"},
		"a name":                  {4, from("web-1"), "web-1"},
		"the latest":              {4, appsv1.DeploymentConfigRollbackSpec{Revision: 4}, ""},
		"the latest by name":      {4, from("web-4"), ""},
		"no earlier deployment":   {1, appsv1.DeploymentConfigRollbackSpec{}, ""},
		"never deployed":          {0, appsv1.DeploymentConfigRollbackSpec{Revision: 1}, ""},
		"negative":                {4, appsv1.DeploymentConfigRollbackSpec{Revision: -1}, ""},
	} {
		got, err := (&rollback{}).target(deployed("a", tt.latest), &appsv1.DeploymentConfigRollback{Name: "web", Spec: tt.spec})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

func TestVersionOfLog(t *testing.T) {
	for name, tt := range map[string]struct {
		latest  int64
		options appsv1.DeploymentLogOptions
		want    int64
	}{
		"the latest":               {3, appsv1.DeploymentLogOptions{}, 3},
		"a version":                {3, appsv1.DeploymentLogOptions{Version: ptr.To[int64](1)}, 1},
		"the previous version":     {3, appsv1.DeploymentLogOptions{Previous: true}, 2},
		"no earlier deployment":    {1, appsv1.DeploymentLogOptions{Previous: true}, 0},
		"never deployed":           {0, appsv1.DeploymentLogOptions{}, 0},
		"after the latest version": {3, appsv1.DeploymentLogOptions{Version: ptr.To[int64](4)}, 0},
		"version and previous":     {3, appsv1.DeploymentLogOptions{Version: ptr.To[int64](1), Previous: true}, 0},
		"version zero":             {3, appsv1.DeploymentLogOptions{Version: ptr.To[int64](0)}, 0},
		"a negative version":       {3, appsv1.DeploymentLogOptions{Version: ptr.To[int64](-2)}, 0},
	} {
		got, err := versionOf(deployed("a", tt.latest), &tt.options)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%s: %d, %v, want %d", name, got, err, tt.want)
		}
	}
}
