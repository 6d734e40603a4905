package security

import (
	"math/big"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestLabelsMatchOpenShift(t *testing.T) {
	pairs, err := parseLabels("s0:/2")
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]string{0: "s0:c1,c0", 1: "s0:c2,c0", 2: "s0:c2,c1", 5: "s0:c3,c2", 20: "s0:c6,c5", 523775: "s0:c1023,c1022"} {
		if got := pairs.at(number); got != want {
			t.Errorf("label %d is %s, want %s", number, got, want)
		}
	}
	if pairs.count().Int64() != 523776 {
		t.Errorf("the number of labels is %v", pairs.count())
	}
	for _, text := range []string{"", "s0", "s0:/0", "s0:/2,1", "s0:/2,2000", "/2", "s0:/x"} {
		if _, err := parseLabels(text); err == nil {
			t.Errorf("labels %q are accepted", text)
		}
	}
}

func TestRangesOfUsers(t *testing.T) {
	r, err := parseRange("1000000000-1999999999/10000")
	if err != nil {
		t.Fatal(err)
	}
	if r.count() != 100000 || r.annotation(3) != "1000030000/10000" {
		t.Errorf("count is %d, the fourth block %s", r.count(), r.annotation(3))
	}
	if index, ok := r.index("1000030000/10000"); !ok || index != 3 {
		t.Errorf("index is %d, %v", index, ok)
	}
	for _, other := range []string{"1/10", "1000030001/10000", "x", "2000000000/10000"} {
		if index, ok := r.index(other); ok {
			t.Errorf("%q is block %d", other, index)
		}
	}
	for _, text := range []string{"", "1-9", "1/2", "9-1/1", "1-9/0", "1-9/10"} {
		if _, err := parseRange(text); err == nil {
			t.Errorf("range %q is accepted", text)
		}
	}
}

func namespaceWith(name string, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Annotations: annotations}}
}

func TestAllocatorGivesNamespacesDistinctBlocks(t *testing.T) {
	first := namespaceWith("taken", map[string]string{
		securityv1.UIDRangeAnnotation: "100/10", securityv1.SupplementalGroupsAnnotation: "100/10", securityv1.MCSAnnotation: "s0:c1,c0",
	})
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	objects := map[string]*corev1.Namespace{"taken": first, "a": namespaceWith("a", nil), "b": namespaceWith("b", nil), "c": namespaceWith("c", nil)}
	client := fake.NewClientset()
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
		if err := client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	a := &Allocator{LabelsPerProject: 5, allocated: new(big.Int), owners: map[string]int{}, client: client,
		namespaces: corelisters.NewNamespaceLister(store)}
	a.ids, _ = parseRange("100-129/10")
	a.levels, _ = parseLabels("s0:/2")
	a.record(first)
	for name, want := range map[string][2]string{"a": {"110/10", "s0:c3,c2"}} {
		if err := a.reconcile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		got, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Annotations[securityv1.UIDRangeAnnotation] != want[0] || got.Annotations[securityv1.SupplementalGroupsAnnotation] != want[0] || got.Annotations[securityv1.MCSAnnotation] != want[1] {
			t.Errorf("%s has %v", name, got.Annotations)
		}
	}
	if err := a.reconcile(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := a.reconcile(t.Context(), "c"); err == nil {
		t.Error("a fourth namespace gets one of three blocks")
	}
	if err := store.Delete(first); err != nil {
		t.Fatal(err)
	}
	if err := a.reconcile(t.Context(), "taken"); err != nil {
		t.Fatal(err)
	}
	if err := a.reconcile(t.Context(), "c"); err != nil {
		t.Errorf("the block of a deleted namespace is not reused: %v", err)
	}
}
