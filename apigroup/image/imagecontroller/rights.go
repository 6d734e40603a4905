package imagecontroller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

// allowed returns the triggers whose image streams the object's pods can pull from. forbidden is an
// error message about one of the other triggers, or "". Streams in the same project require no
// permission.
func (t *triggerController) allowed(ctx context.Context, object *unstructured.Unstructured, triggers []trigger) (allowed []trigger, forbidden string, err error) {
	namespace := object.GetNamespace()
	account := pull.AccountOf(namespace, t.accountIn(object))
	for _, trigger := range triggers {
		stream := trigger.stream(namespace)
		if stream.Namespace != namespace {
			may, err := t.check(ctx, account, pull.Get, stream.Namespace, stream.Name)
			if err != nil {
				return nil, "", err
			}
			if !may {
				forbidden = pull.Forbidden(account, stream.Namespace, stream.Name)
				continue
			}
		}
		allowed = append(allowed, trigger)
	}
	return allowed, forbidden, nil
}

// accountIn returns a pod spec that contains only the service account of the object's pods.
func (t *triggerController) accountIn(object *unstructured.Unstructured) *corev1.PodSpec {
	field := func(name string) string {
		text, _, _ := unstructured.NestedString(object.Object, append(slices.Clone(t.template), "spec", name)...)
		return text
	}
	return &corev1.PodSpec{ServiceAccountName: field("serviceAccountName"), DeprecatedServiceAccount: field("serviceAccount")}
}

// report records a missing permission in an event and in a condition. If no permission is missing,
// it removes a stale condition. It returns the updated object, or nil if the object was deleted.
func (t *triggerController) report(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured, forbidden string) (*unstructured.Unstructured, error) {
	if forbidden != "" {
		t.events.Event(object, corev1.EventTypeWarning, pull.ForbiddenReason, forbidden)
	}
	if !t.conditions {
		return object, nil
	}
	before, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	after := conditions(before, forbidden)
	if len(before) == len(after) && apiequality.Semantic.DeepEqual(before, after) {
		return object, nil
	}
	next := object.DeepCopy()
	if err := unstructured.SetNestedSlice(next.Object, after, "status", "conditions"); err != nil {
		return nil, fmt.Errorf("set condition %q: %w", pull.ConditionType, err)
	}
	existing, err := client.UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: "image-trigger"})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return existing, err
}

// conditions returns the conditions in before with an updated condition about the missing
// permission. If forbidden is empty, it returns them without that condition.
func conditions(before []any, forbidden string) []any {
	var after []any
	for _, entry := range before {
		condition, _ := entry.(map[string]any)
		if condition["type"] != pull.ConditionType {
			after = append(after, entry)
			continue
		}
		if forbidden != "" && condition["message"] == forbidden {
			return before
		}
	}
	if forbidden == "" {
		return after
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	return append(after, map[string]any{
		"type": pull.ConditionType, "status": string(corev1.ConditionFalse), "reason": pull.ForbiddenReason, "message": forbidden,
		"lastTransitionTime": now,
	})
}
