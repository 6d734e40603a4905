package project

import (
	"testing"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMembersChangeOnlyDescription(t *testing.T) {
	present := &projectv1.Project{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", ResourceVersion: "1", Finalizers: []string{"example.com/own"}, Annotations: map[string]string{projectv1.ProjectNodeSelector: "a=b"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node", UID: "1"}},
	}}
	for name, c := range map[string]struct {
		change func(*projectv1.Project)
		field  string
	}{
		"display name":     {func(p *projectv1.Project) { p.Annotations[displayNameAnnotation] = "Shop" }, ""},
		"generated name":   {func(p *projectv1.Project) { p.GenerateName = "shop-" }, ""},
		"finalizer":        {func(p *projectv1.Project) { p.Finalizers = append(p.Finalizers, "example.com/mine") }, "metadata.finalizers"},
		"no finalizer":     {func(p *projectv1.Project) { p.Finalizers = nil }, "metadata.finalizers"},
		"foreground":       {func(p *projectv1.Project) { p.Finalizers = []string{metav1.FinalizerDeleteDependents} }, "metadata.finalizers"},
		"owner":            {func(p *projectv1.Project) { p.OwnerReferences[0].UID = "2" }, "metadata.ownerReferences"},
		"no owner":         {func(p *projectv1.Project) { p.OwnerReferences = nil }, "metadata.ownerReferences"},
		"time of deletion": {func(p *projectv1.Project) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "metadata.deletionTimestamp"},
		"grace period":     {func(p *projectv1.Project) { p.DeletionGracePeriodSeconds = new(int64(5)) }, "metadata.deletionGracePeriodSeconds"},
		"label":            {func(p *projectv1.Project) { p.Labels = map[string]string{"a": "b"} }, "metadata.labels"},
		"node selector":    {func(p *projectv1.Project) { delete(p.Annotations, projectv1.ProjectNodeSelector) }, "metadata.annotations[openshift.io/node-selector]"},
	} {
		changed := present.DeepCopy()
		c.change(changed)
		errs := strategy{}.ValidateUpdate(t.Context(), changed, present)
		if (len(errs) == 0) != (c.field == "") || len(errs) > 0 && errs[0].Field != c.field {
			t.Errorf("%s: %v, want an error at %q", name, errs, c.field)
		}
	}
	changed := present.DeepCopy()
	changed.Spec.Finalizers, changed.Status.Phase = []corev1.FinalizerName{"example.com/mine"}, corev1.NamespaceTerminating
	if (strategy{}).PrepareForUpdate(t.Context(), changed, present); len(changed.Spec.Finalizers) > 0 || changed.Status.Phase != "" {
		t.Errorf("fields that only the platform changes are now %v and %v", changed.Spec, changed.Status)
	}
}

func TestValidateRequestRejectsReservedNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"shop": true, "systems": true, "my-system": true, "default-shop": true, "kubeflow": true, "openshifted": true,
		"default": false, "system": false, "system-serviceaccounts": false, "openshift": false, "openshift-shop": false, "kube": false, "kube-system": false, "kube-shop": false,
		"kubernetes": false, "kubernetes-shop": false, "slipway": false, "slipway-shop": false,
		// Names that would capture the cluster's own DNS names, or the names of routes.
		"svc": false, "pod": false, "endpoints": false, "local": false, "wonderland": false, "cluster": true, "apps": true, "svcs": true,
	} {
		domains := []string{"cluster.local", "Apps.Wonderland."}
		errs := validateRequest(&projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, domains)
		if (len(errs) == 0) != ok {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
