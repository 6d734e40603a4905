package quota

import (
	"context"
	"errors"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// projectQuota returns a quota of the project "shop" with limits.
func projectQuota(name string, hard corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
}

// newProjectQuotas returns a projectQuotas for a cluster with the given quotas. Its cache also
// contains a quota named "deleted", which no longer exists.
func newProjectQuotas(t *testing.T, quotas ...*corev1.ResourceQuota) (*projectQuotas, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	cached := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, quota := range quotas {
		if _, err := client.CoreV1().ResourceQuotas(quota.Namespace).Create(t.Context(), quota.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, quota := range append(quotas, projectQuota("deleted", amounts(streamsName, "9"))) {
		if err := cached.Add(quota); err != nil {
			t.Fatal(err)
		}
	}
	return &projectQuotas{client: client, quotas: corelisters.NewResourceQuotaLister(cached)}, client
}

func TestProjectQuotasAreReducedToImageStreams(t *testing.T) {
	both := amounts(streamsName, "3")
	both["pods"] = apiresource.MustParse("10")
	p, _ := newProjectQuotas(t, projectQuota("streams", both), projectQuota("pods", amounts("pods", "1")))
	quotas, err := p.GetQuotas("shop")
	if err != nil || len(quotas) != 1 {
		t.Fatalf("quotas are %v, %v", quotas, err)
	}
	if got := quotas[0]; got.Name != "streams" || !equality.Semantic.DeepEqual(got.Spec.Hard, amounts(streamsName, "3")) || !equality.Semantic.DeepEqual(got.Status.Hard, got.Spec.Hard) {
		t.Errorf("the quota is %+v", got)
	}
	if quotas, err := p.GetQuotas("other"); err != nil || len(quotas) > 0 {
		t.Errorf("quotas of another project are %v, %v", quotas, err)
	}
}

func TestImageStreamsOfProjectAreCounted(t *testing.T) {
	p, client := newProjectQuotas(t, projectQuota("streams", amounts(streamsName, "3")), projectQuota("pods", amounts("pods", "1")))
	c := counter{projects: p, objects: func(_ context.Context, resource schema.GroupResource, namespace string) ([]runtime.Object, error) {
		if resource != imagev1.Resource("imagestreams") || namespace != "shop" {
			t.Errorf("%s of %s are listed", resource, namespace)
		}
		return []runtime.Object{&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}}, nil
	}}
	if err := c.countProjects(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	counted, err := client.CoreV1().ResourceQuotas("shop").Get(t.Context(), "streams", metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(counted.Status, corev1.ResourceQuotaStatus{Hard: amounts(streamsName, "3"), Used: amounts(streamsName, "2")}) {
		t.Errorf("the status is %+v, %v", counted.Status, err)
	}
	other, err := client.CoreV1().ResourceQuotas("shop").Get(t.Context(), "pods", metav1.GetOptions{})
	if err != nil || len(other.Status.Used) > 0 {
		t.Errorf("the status of a quota without image streams is %+v, %v", other.Status, err)
	}
}

func TestErrorsOfWritesAreReportedOrRepeated(t *testing.T) {
	quotas := schema.GroupResource{Resource: "resourcequotas"}
	for name, tt := range map[string]struct {
		refusal error
		repeats bool // if false, the counter returns the error
	}{
		"another request changed the quota": {apierrors.NewConflict(quotas, "streams", errors.New("changed")), true},
		"the quota was deleted":             {apierrors.NewNotFound(quotas, "streams"), true},
		"the server is overloaded":          {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			p, client := newProjectQuotas(t, projectQuota("streams", amounts(streamsName, "3")))
			client.PrependReactor("update", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.refusal })
			c := counter{projects: p, objects: func(context.Context, schema.GroupResource, string) ([]runtime.Object, error) { return nil, nil }}
			now := time.Now()
			if err := c.countProjects(t.Context(), now); (err == nil) != tt.repeats {
				t.Errorf("got %v", err)
			}
			if due := c.due("shop/streams", true, now); due != tt.repeats {
				t.Errorf("the quota is counted again: %t", due)
			}
		})
	}
}
