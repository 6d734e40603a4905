package quota

import (
	"slices"
	"testing"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

// newProjects returns the ledger of a cluster with projects `a` and `b`. Project `a` has the label
// team=red, and both projects have a requester annotation whose value is alice. The `red` quota
// selects the label, and the `alice` quota selects the annotation.
func newProjects(t *testing.T) *ledger {
	t.Helper()
	const requester = "openshift.io/requester"
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, labels := range map[string]map[string]string{"a": {"team": "red"}, "b": nil} {
		if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{requester: "alice"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	quota := func(name string, selector quotav1.ClusterResourceQuotaSelector) *quotav1.ClusterResourceQuota {
		return &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: quotav1.ClusterResourceQuotaSpec{Selector: selector}}
	}
	store := storetest.New(resource(), &quotav1.ClusterResourceQuotaList{},
		quota("red", quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}),
		quota("alice", quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{requester: "alice"}}))
	return newLedger(map[schema.GroupResource]*registry.Store{resource(): store}, corelisters.NewNamespaceLister(namespaces))
}

func TestLedgerFindsQuotasAndProjects(t *testing.T) {
	l := newProjects(t)
	for namespace, want := range map[string][]string{"a": {"alice", "red"}, "b": {"alice"}} {
		if got, err := l.names(t.Context(), namespace); err != nil || !slices.Equal(got, want) {
			t.Errorf("quotas of %s are %v, %v, want %v", namespace, got, err, want)
		}
	}
	if _, err := l.names(t.Context(), "none"); err == nil {
		t.Error("a missing project has quotas")
	}
	for name, want := range map[string][]string{"red": {"a"}, "alice": {"a", "b"}} {
		quota, err := l.read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.selected(quota); err != nil || !slices.Equal(got, want) {
			t.Errorf("projects of %s are %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestAppliedQuotasOfProject(t *testing.T) {
	l := newProjects(t)
	a := &applied{namespaces: l.namespaces, quotas: l.stores[resource()]}
	for namespace, want := range map[string][]string{"a": {"alice", "red"}, "b": {"alice"}} {
		list, err := a.List(request.WithNamespace(t.Context(), namespace), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range list.(*quotav1.AppliedClusterResourceQuotaList).Items {
			got = append(got, item.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("applied quotas of %s are %v, want %v", namespace, got, want)
		}
	}
	for name, tt := range map[string]struct {
		namespace, quota string
		want             func(error) bool // nil if the quota is returned
	}{
		"quota of the project":        {"a", "red", nil},
		"quota of another project":    {"b", "red", apierrors.IsNotFound},
		"missing quota":               {"a", "none", apierrors.IsNotFound},
		"missing project":             {"none", "red", apierrors.IsNotFound},
		"request without a namespace": {"", "red", apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := a.Get(request.WithNamespace(t.Context(), tt.namespace), tt.quota, &metav1.GetOptions{})
			switch {
			case tt.want == nil && (err != nil || object.(*quotav1.AppliedClusterResourceQuota).Name != tt.quota):
				t.Errorf("got %v, %v", object, err)
			case tt.want != nil && !tt.want(err):
				t.Errorf("got %v, %v", object, err)
			}
		})
	}
}
