package imagecontroller

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestTriggerOnOtherProjectRequiresAccess(t *testing.T) {
	checks := 0
	triggerController := &triggerController{workload: workloads()[0], check: func(_ context.Context, account user.Info, verb, namespace, stream string) (bool, error) {
		checks++
		return account.GetName() == "system:serviceaccount:shop:web" && verb == "get" && namespace == "base" && stream == "app", nil
	}}
	object := &unstructured.Unstructured{}
	object.SetNamespace("shop")
	if err := unstructured.SetNestedField(object.Object, "web", "spec", "template", "spec", "serviceAccountName"); err != nil {
		t.Fatal(err)
	}
	of := func(namespace, name string) (item trigger) {
		item.From.Namespace, item.From.Name = namespace, name
		return item
	}
	local, granted, other := of("", "db:latest"), of("base", "app:latest"), of("bank", "app:latest")
	allowed, forbidden, err := triggerController.allowed(t.Context(), object, []trigger{local, granted, other})
	if err != nil || len(allowed) != 2 || allowed[0] != local || allowed[1] != granted {
		t.Errorf("allowed are %v, %v", allowed, err)
	}
	if !strings.Contains(forbidden, "system:serviceaccount:shop:web") || !strings.Contains(forbidden, `"bank"`) || checks != 2 {
		t.Errorf("after %d checks: %s", checks, forbidden)
	}
}

func TestMissingPermissionSetsCondition(t *testing.T) {
	available := map[string]any{"type": "Available", "status": "True"}
	with := conditions([]any{available}, "grant it")
	if len(with) != 2 || with[1].(map[string]any)["status"] != string(corev1.ConditionFalse) || with[1].(map[string]any)["message"] != "grant it" {
		t.Fatalf("conditions are %v", with)
	}
	if second := conditions(with, "grant it"); len(second) != 2 || second[1].(map[string]any)["lastTransitionTime"] != with[1].(map[string]any)["lastTransitionTime"] {
		t.Errorf("after a second report, the conditions are %v", second)
	}
	if changed := conditions(with, "grant another"); len(changed) != 2 || changed[1].(map[string]any)["message"] != "grant another" {
		t.Errorf("with another message, the conditions are %v", changed)
	}
	if without := conditions(with, ""); len(without) != 1 {
		t.Errorf("with permission, the conditions are %v", without)
	}
}
