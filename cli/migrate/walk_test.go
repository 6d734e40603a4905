package migrate

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// infoOf returns a config map, or a node if namespace is empty.
func infoOf(namespace, name string) *resource.Info {
	kind, plural, scope := "ConfigMap", "configmaps", meta.RESTScopeNamespace
	if namespace == "" {
		kind, plural, scope = "Node", "nodes", meta.RESTScopeRoot
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetResourceVersion("1")
	return &resource.Info{
		Namespace: namespace, Name: name, Object: object,
		Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: plural}, Scope: scope},
	}
}

func TestRangeOfKeysLimitsObjects(t *testing.T) {
	pod, node := infoOf("shop", "web"), infoOf("", "node")
	for _, tt := range []struct {
		name       string
		from, to   string
		namespaced bool
		pod, node  bool
	}{
		{"no range", "", "", false, true, true},
		{"one project", "", "", true, true, false},
		{"from the project", "shop/", "", false, true, false},
		{"from the object", "shop/web", "", false, true, false},
		{"after the object", "shop/web0", "", false, false, false},
		{"before the project", "", "shop", false, false, true},
		{"to the object", "", "shop/web", false, false, true},
		{"around the node", "no", "nz", false, false, true},
	} {
		w := &walk{fromKey: tt.from, toKey: tt.to}
		if got := w.within(pod, tt.namespaced); got != tt.pod {
			t.Errorf("%s: pod: got %v, want %v", tt.name, got, tt.pod)
		}
		if got := w.within(node, tt.namespaced); got != tt.node {
			t.Errorf("%s: node: got %v, want %v", tt.name, got, tt.node)
		}
	}
}

func TestMigrationRetriesOnlyTemporaryErrors(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	conflict := apierrors.NewConflict(configMaps, "web", errors.New("changed"))
	for _, tt := range []struct {
		name     string
		errors   []error // results of the updates, in order
		trial    bool
		change   bool
		version  string // resource version after the update
		changed  bool
		err      error
		requests string
	}{
		{"stored", nil, false, true, "2", true, nil, "update"},
		{"stored form is equal", nil, false, true, "1", false, nil, "update"},
		{"no change", nil, false, false, "2", false, nil, ""},
		{"dry run", nil, true, true, "2", true, nil, ""},
		{"conflict", []error{conflict}, false, true, "2", true, nil, "update get update"},
		{"overload and conflict", []error{apierrors.NewTooManyRequests("slow", 0), conflict}, false, true, "2", true, nil, "update get update get update"},
		{"deleted", []error{apierrors.NewNotFound(configMaps, "web")}, false, true, "2", false, errIgnored, "update"},
		{"cannot be updated", []error{apierrors.NewMethodNotSupported(configMaps, "update")}, false, true, "2", false, errIgnored, "update"},
		{"rejected", []error{apierrors.NewBadRequest("invalid")}, false, true, "2", false, apierrors.NewBadRequest("invalid"), "update"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info := infoOf("shop", "web")
			client := fake.NewSimpleDynamicClient(runtime.NewScheme(), info.Object.DeepCopyObject())
			remaining := tt.errors
			client.PrependReactor("update", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if len(remaining) > 0 {
					err := remaining[0]
					remaining = remaining[1:]
					return true, nil, err
				}
				stored := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject().(*unstructured.Unstructured)
				stored.SetResourceVersion(tt.version)
				return true, stored, nil
			})
			w := newWalk("configmaps")
			changed, err := w.migrate(t.Context(), client, info, migration{
				change: func(*unstructured.Unstructured) (bool, error) { return tt.change, nil }, save: update,
			}, tt.trial)
			if changed != tt.changed || (err == nil) != (tt.err == nil) || err != nil && !errors.Is(err, tt.err) && err.Error() != tt.err.Error() {
				t.Errorf("got changed %v and error %v, want %v and %v", changed, err, tt.changed, tt.err)
			}
			var verbs []string
			for _, action := range client.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			if got := strings.Join(verbs, " "); got != tt.requests {
				t.Errorf("got the requests %q, want %q", got, tt.requests)
			}
		})
	}
}

func TestSummaryCountsResults(t *testing.T) {
	var out strings.Builder
	count := &tally{out: &out, failing: sets.New[string](), verb: "migrated"}
	count.count(infoOf("shop", "a"), true, nil)
	count.count(infoOf("shop", "b"), false, nil)
	count.count(infoOf("shop", "c"), false, errIgnored)
	count.count(infoOf("", "d"), false, errors.New("no disk space"))
	count.count(nil, false, errors.New("list failed"))
	err := count.end(nil, false, false)
	want := `migrated: -n shop configmaps/a
error: nodes/d: no disk space
error: unknown: list failed
summary: total=5 errors=2 ignored=1 unchanged=1 migrated=1
info: to rerun only failing resources, add --include=nodes
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err == nil || err.Error() != "2 resources failed to migrate" {
		t.Errorf("got error %v", err)
	}
}

func TestSummaryOfDryRunNamesNextStep(t *testing.T) {
	for _, tt := range []struct {
		name     string
		migrated int
		printed  bool
		problem  error
		want     string
	}{
		{"changes", 1, false, nil, "summary (dry run): total=0 errors=0 ignored=0 unchanged=0 migrated=1\nto migrate these resources, run with --confirm\n"},
		{"no changes", 0, false, nil, "summary (dry run): total=0 errors=0 ignored=0 unchanged=0 migrated=0\n"},
		{"objects are printed", 1, true, nil, ""},
		{"list failed", 0, true, errors.New("no permission"), ""},
	} {
		var out strings.Builder
		err := (&tally{out: &out, migrated: tt.migrated}).end(tt.problem, true, tt.printed)
		if got := out.String(); got != tt.want || !errors.Is(err, tt.problem) {
			t.Errorf("%s: got %q and error %v, want %q and %v", tt.name, got, err, tt.want, tt.problem)
		}
	}
}

func TestProgressNamesKinds(t *testing.T) {
	var out strings.Builder
	reporting, silent := progress{out: &out}, progress{}
	for _, kind := range []string{"pods", "pods", "secrets"} {
		info := &resource.Info{Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: kind}}}
		reporting.visit(info)
		silent.visit(info)
	}
	if got, want := out.String(), "0 objects visited, next: pods\n2 objects visited, next: secrets\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
