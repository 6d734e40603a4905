package quota

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestEveryObjectIsCountedOnceUnderEachName(t *testing.T) {
	existing := map[string]int{"secrets": 3, "imagestreams.image.openshift.io": 2, "routes.route.openshift.io": 1, "pods": 5}
	c := counter{
		known: func() []quota.Evaluator {
			return []quota.Evaluator{generic.NewObjectCountEvaluator(corev1.Resource("secrets"), nil, "secrets"), generic.NewObjectCountEvaluator(corev1.Resource("pods"), nil, "pods")}
		},
		objects: func(_ context.Context, of schema.GroupResource, _ string) (objects []runtime.Object, _ error) {
			if of == corev1.Resource("pods") {
				t.Error("pods are listed, which the quota does not limit")
			}
			for range existing[of.String()] {
				objects = append(objects, &metav1.PartialObjectMetadata{})
			}
			return objects, nil
		},
	}
	hard := corev1.ResourceList{}
	want := map[corev1.ResourceName]int64{
		"secrets": 3, "count/secrets": 3, "openshift.io/imagestreams": 2, "count/imagestreams.image.openshift.io": 2, "count/routes.route.openshift.io": 1,
		"count/widgets.example.com": 0, "requests.cpu": 0,
	}
	for name := range want {
		hard[name] = apiresource.MustParse("10")
	}
	used, err := c.usage(t.Context(), &corev1.ResourceQuotaSpec{Hard: hard}, "shop")
	if err != nil || len(used) != len(want) {
		t.Fatalf("used is %v, %v", used, err)
	}
	for name, count := range want {
		if got := used[name]; got.Value() != count {
			t.Errorf("%s: %d are used, want %d", name, got.Value(), count)
		}
	}
}

func TestQuotasAreCountedWhenTheyMayHaveChanged(t *testing.T) {
	var c counter
	now := time.Now()
	steps := []struct {
		name  string
		after time.Duration
		same  bool
		want  bool
	}{
		{"the first time", 0, true, true},
		{"at once again", 0, true, false},
		{"with another project", 0, false, true},
		{"much later", recount, true, true},
		{"a little later", recount + time.Second, true, false},
	}
	for _, step := range steps {
		if got := c.due("q", step.same, now.Add(step.after)); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
	c.stale([]string{"q"})
	if !c.due("q", true, now.Add(recount+time.Second)) || c.due("q", true, now.Add(recount+time.Second)) {
		t.Error("a request that may have changed something has the quota counted once")
	}
}

func TestQuotasAreClaimedOneAfterTheOther(t *testing.T) {
	var l locks
	one := []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	release := l.acquire(one)
	claimed := make(chan func())
	go func() { claimed <- l.acquire(one[1:]) }()
	select {
	case <-claimed:
		t.Fatal("a quota that is held is claimed")
	default:
	}
	release()
	(<-claimed)()
	l.acquire(one)()
}

func TestWhatRequestsUnderWayHaveReservedIsNotFreed(t *testing.T) {
	var f flights
	ctx, answered := context.WithCancel(t.Context())
	f.begin(ctx, []string{"q", "r"})
	refused := f.begin(t.Context(), []string{"q"})
	refused()
	refused() // counts once
	if !f.busy("q") || !f.busy("r") || f.busy("other") {
		t.Error("a request under way is not known")
	}
	answered()
	eventually.True(t, "the end of the request", func() bool { return !f.busy("q") && !f.busy("r") })

	used := func(secrets, configMaps string) corev1.ResourceQuotaStatus {
		return corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"secrets": apiresource.MustParse("9"), "configmaps": apiresource.MustParse("9")},
			Used: corev1.ResourceList{"secrets": apiresource.MustParse(secrets), "configmaps": apiresource.MustParse(configMaps)},
		}
	}
	status := func(total corev1.ResourceQuotaStatus, projects map[string]corev1.ResourceQuotaStatus) *quotav1.ClusterResourceQuotaStatus {
		made := &quotav1.ClusterResourceQuotaStatus{Total: total}
		for _, name := range slices.Sorted(maps.Keys(projects)) {
			made.Namespaces = append(made.Namespaces, quotav1.ResourceQuotaStatusByNamespace{Namespace: name, Status: projects[name]})
		}
		return made
	}
	counted := status(used("3", "1"), map[string]corev1.ResourceQuotaStatus{"a": used("1", "1"), "b": used("2", "0")})
	keepReserved(counted, status(used("5", "0"), map[string]corev1.ResourceQuotaStatus{"a": used("4", "0"), "gone": used("1", "0")}))
	want := status(used("6", "1"), map[string]corev1.ResourceQuotaStatus{"a": used("4", "1"), "b": used("2", "0")})
	if !equality.Semantic.DeepEqual(counted, want) {
		t.Errorf("counted %+v, want %+v", counted, want)
	}
}
