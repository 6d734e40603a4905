package ansible

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestPlaybooksGetParametersAndCredentials(t *testing.T) {
	credentials := map[string]any{"user": "a"}
	bound := map[string]any{"user": "b"}
	rec := &record{
		ID: "i", Service: "s", Plan: "p", Namespace: "shop", Credentials: credentials, Bindings: map[string]*bindingRecord{"b": {Credentials: bound}},
		Operation: &operation{
			Action: provisionAction, Bundle: source{PlanName: "small"}, User: "alice", Values: map[string]any{"size": 2.0, "namespace": "other"},
		},
	}
	base := map[string]any{
		"size": 2.0, "namespace": "shop", "cluster": "openshift", "_apb_plan_id": "small", "_apb_service_class_id": "s",
		"_apb_service_instance_id": "i", "_apb_last_requesting_user": "alice",
	}
	for action, more := range map[string]map[string]any{
		provisionAction:   {},
		deprovisionAction: {"_apb_provision_creds": credentials},
		unbindAction:      {"_apb_provision_creds": credentials, "_apb_service_binding_id": "b", "_apb_bind_creds": bound},
	} {
		rec.Operation.Action, rec.Operation.Binding = action, ""
		if action == unbindAction {
			rec.Operation.Binding = "b"
		}
		for key, value := range base {
			more[key] = value
		}
		text, err := rec.arguments()
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, more) {
			t.Errorf("%s: %v, want %v", action, got, more)
		}
	}
}
