package projectowner

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestProjectsOfOwner(t *testing.T) {
	var objects []runtime.Object
	for project, requester := range map[string]string{"shop": "alice", "store": "alice", "evil": "mallory", "open": "", "infra": ""} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project, Annotations: map[string]string{"openshift.io/requester": requester}}})
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	namespaces := factory.Core().V1().Namespaces().Informer()
	for range 2 { // the second call is a no-op
		if err := Index(namespaces); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for project, want := range map[string][]string{
		"shop": {"shop", "store"}, "evil": {"evil"}, "open": {"open"}, "new": {"new"},
	} {
		got := Projects(namespaces.GetIndexer(), project)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("projects of the owner of %s: %v, want %v", project, got, want)
		}
	}
}
