package servicecatalog

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// The hashes were computed with sha224sum.
func TestFieldsAreLabels(t *testing.T) {
	fields := map[string]func(*v1beta1.ServiceInstance) string{
		"spec.externalID":              func(i *v1beta1.ServiceInstance) string { return i.Spec.ExternalID },
		"spec.servicePlanRef.name":     func(i *v1beta1.ServiceInstance) string { return localName(i.Spec.ServicePlanRef) },
		"spec.servicePlanRef.previous": func(*v1beta1.ServiceInstance) string { return "" },
	}
	instance := &v1beta1.ServiceInstance{}
	instance.Labels = map[string]string{"own": "a", "servicecatalog.k8s.io/spec.servicePlanRef.previous": "b"}
	instance.Spec.ExternalID, instance.Spec.ServicePlanRef = "db", &v1beta1.LocalObjectReference{Name: "small"}
	labelFields(instance, fields)
	want := map[string]string{
		"own": "a", "servicecatalog.k8s.io/spec.externalID": "a9759675c5b45fea42d2d43a1d29e47595c80667e98d6dbbb21bc24a", "servicecatalog.k8s.io/spec.servicePlanRef.name": "d314aa90e652bf3932088048e8f6cc59ab5851726337f3c33371c65f",
	}
	if diff := cmp.Diff(want, instance.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	before := maps.Clone(instance.Labels)
	labelFields(instance, fields)
	if diff := cmp.Diff(before, instance.Labels); diff != "" {
		t.Errorf("a second call changes the labels (-want +got):\n%s", diff)
	}
}
