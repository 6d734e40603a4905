// Package openshiftapi tests that the API server serves OpenShift's API groups like Kubernetes' API
// groups. OpenShift's groups must support every verb, patch type, selector, policy and quota, under
// their current and old names.
package openshiftapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

func TestEveryResourceHasEveryVerb(t *testing.T) {
	c := kit.Shared(t)
	for _, r := range resources {
		t.Run(r.plural, func(t *testing.T) {
			client := r.client(t, c)
			a, b := r.object(t, c, "a-"+strings.ToLower(c.Namespace)), r.object(t, c, "b-"+strings.ToLower(c.Namespace))
			t.Cleanup(func() { _ = client.Delete(context.Background(), a.GetName(), metav1.DeleteOptions{}) })
			checkInvalid(t, client, a)
			a = checkWatch(t, client, a)
			checkPatches(t, client, a.GetName())
			checkApply(t, client, a)
			if _, err := client.Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			checkLists(t, client, a.GetName(), b.GetName())
			checkTable(t, c, r, a.GetName())
			checkFinalizer(t, client, a.GetName())
			labels := metav1.ListOptions{LabelSelector: "made=twice"}
			if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, labels); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Get(t.Context(), b.GetName(), metav1.GetOptions{}); err != nil {
				t.Errorf("deletecollection deleted %s, which does not have the label: %v", b.GetName(), err)
			}
			if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + b.GetName()}); err != nil {
				t.Fatal(err)
			}
			// Wait, because the API server deletes an object only after its finalizers have been
			// removed.
			c.WaitFor("deletion of "+b.GetName()+" with its collection", func(ctx context.Context) error {
				_, err := client.Get(ctx, b.GetName(), metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("it exists: %v", err)
			})
		})
	}
}

// checkInvalid checks that the API server rejects invalid objects.
func checkInvalid(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) {
	t.Helper()
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	if _, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry run: %v", err)
	}
	unknown := object.DeepCopy()
	unknown.Object["unheardOf"] = "x"
	_, err := client.Create(t.Context(), unknown, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), `unknown field "unheardOf"`) {
		t.Fatalf("unknown field: %v", err)
	}
	misnamed := object.DeepCopy()
	misnamed.SetName("a/b")
	if _, err := client.Create(t.Context(), misnamed, metav1.CreateOptions{}); err == nil {
		t.Fatal("the name a/b was accepted")
	}
}

// checkWatch creates the object, and checks that a watch reports the creation. It returns the
// created object.
func checkWatch(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=" + object.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	result, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	event := <-events.ResultChan()
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type != watch.Added || obj.GetUID() != result.GetUID() || obj.GetAPIVersion() != object.GetAPIVersion() || obj.GetKind() != object.GetKind() {
		t.Fatalf("watched %+v", event)
	}
	return result
}

func checkPatches(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op": "add", "path": "/metadata/annotations", "value": {"json": "yes"}}]`,
		types.MergePatchType:          `{"metadata": {"annotations": {"merge": "yes"}}}`,
		types.StrategicMergePatchType: `{"metadata": {"annotations": {"strategic": "yes"}}}`,
	} {
		patched, err := client.Patch(t.Context(), name, kind, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		word := strings.Split(strings.TrimPrefix(string(kind), "application/"), "-")[0]
		if patched.GetAnnotations()[word] != "yes" {
			t.Fatalf("%s: annotations are %v", kind, patched.GetAnnotations())
		}
	}
}

// checkApply applies the object as two field managers, with and without conflicts.
func checkApply(t *testing.T, client dynamic.ResourceInterface, object *unstructured.Unstructured) {
	t.Helper()
	apply := func(manager, label, value string, force bool) (*unstructured.Unstructured, error) {
		desired := &unstructured.Unstructured{Object: map[string]any{}}
		desired.SetAPIVersion(object.GetAPIVersion())
		desired.SetKind(object.GetKind())
		desired.SetName(object.GetName())
		desired.SetLabels(map[string]string{label: value})
		return client.Apply(t.Context(), object.GetName(), desired, metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", "made", "once", false); err != nil {
		t.Fatal(err)
	}
	both, err := apply("two", "other", "yes", false)
	if err != nil || both.GetLabels()["made"] != "once" || both.GetLabels()["other"] != "yes" {
		t.Fatalf("labels of two managers are %v, %v", both.GetLabels(), err)
	}
	if _, err := apply("two", "made", "twice", false); !apierrors.IsConflict(err) {
		t.Fatalf("applying another manager's label: %v", err)
	}
	if forced, err := apply("two", "made", "twice", true); err != nil || forced.GetLabels()["made"] != "twice" {
		t.Fatalf("applying it by force: %v", err)
	}
}

func checkLists(t *testing.T, client dynamic.ResourceInterface, labeled, other string) {
	t.Helper()
	list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "made=twice"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != labeled {
		t.Fatalf("by label: %v, %v", list, err)
	}
	list, err = client.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + other})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != other {
		t.Fatalf("by field: %v, %v", list, err)
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.unheardOf=x"}); !apierrors.IsBadRequest(err) {
		t.Fatalf("by an unsupported field: %v", err)
	}
	seen := map[string]bool{}
	for options := (metav1.ListOptions{Limit: 1}); ; {
		page, err := client.List(t.Context(), options)
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("page with one object: %v, %v", page, err)
		}
		seen[page.Items[0].GetName()] = true
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if !seen[labeled] || !seen[other] {
		t.Fatalf("pages showed %v", seen)
	}
}

// checkTable requests the table that `oc get` prints.
func checkTable(t *testing.T, c *kit.Cluster, r resource, name string) {
	t.Helper()
	path := fmt.Sprintf("/apis/%s/%s/%s", r.version(), r.plural, name)
	if !r.clusterwide {
		path = fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s", r.version(), c.Namespace, r.plural, name)
	}
	response, err := c.Client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(response, &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if got, want := strings.Join(columns, " "), strings.TrimSpace("Name "+r.columns); got != want || len(table.Rows) != 1 || table.Rows[0].Cells[0] != name {
		t.Errorf("table has %q with %v, want %q", got, table.Rows, want)
	}
}

// checkFinalizer checks the deletion of an object that has a finalizer.
func checkFinalizer(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	patch := func(text string) {
		t.Helper()
		if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata": {"finalizers": ["example.com/hold"]}}`)
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || object.GetDeletionTimestamp() == nil {
		t.Fatalf("an object with a finalizer after its deletion: %v, %v", object, err)
	}
	patch(`{"metadata": {"finalizers": null}}`)
	if _, err := client.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the object after removal of its finalizer: %v", err)
	}
}
