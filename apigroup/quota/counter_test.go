package quota

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestUsageCountsEachObjectOncePerName(t *testing.T) {
	existing := map[string]int{"secrets": 3, "imagestreams.image.openshift.io": 2, "routes.route.openshift.io": 1, "pods": 5}
	c := counter{
		evaluators: func() []quota.Evaluator {
			return []quota.Evaluator{generic.NewObjectCountEvaluator(corev1.Resource("secrets"), nil, "secrets"), generic.NewObjectCountEvaluator(corev1.Resource("pods"), nil, "pods")}
		},
		objects: func(_ context.Context, of schema.GroupResource, _ string) (objects []runtime.Object, _ error) {
			if of == corev1.Resource("pods") {
				t.Error("pods are listed, although the quota does not limit them")
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
	quantities, err := c.usage(t.Context(), &corev1.ResourceQuotaSpec{Hard: hard}, "shop")
	if err != nil || len(quantities) != len(want) {
		t.Fatalf("used is %v, %v", quantities, err)
	}
	for name, count := range want {
		if got := quantities[name]; got.Value() != count {
			t.Errorf("%s: usage is %d, want %d", name, got.Value(), count)
		}
	}
}

func TestQuotaIsDueAfterChangesAndInterval(t *testing.T) {
	var c counter
	now := time.Now()
	steps := []struct {
		name  string
		after time.Duration
		same  bool
		want  bool
	}{
		{"the first check", 0, true, true},
		{"immediately again", 0, true, false},
		{"with another project", 0, false, true},
		{"much later", recountInterval, true, true},
		{"a little later", recountInterval + time.Second, true, false},
	}
	for _, step := range steps {
		if got := c.due("q", step.same, now.Add(step.after)); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
	c.stale([]string{"q"})
	if !c.due("q", true, now.Add(recountInterval+time.Second)) || c.due("q", true, now.Add(recountInterval+time.Second)) {
		t.Error("the quota is not counted exactly once after a request that can change its usage")
	}
}

func TestLocksSerializeRequests(t *testing.T) {
	var l locks
	quotas := []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	release := l.acquire(quotas)
	claims := make(chan func())
	go func() { claims <- l.acquire(quotas[1:]) }()
	select {
	case <-claims:
		t.Fatal("a locked quota is acquired")
	default:
	}
	release()
	(<-claims)()
	l.acquire(quotas)()
}

func TestReservationsOfActiveRequestsAreKept(t *testing.T) {
	var f reservations
	two := amounts("secrets", "2")
	ctx, cancel := context.WithCancel(t.Context())
	f.begin(ctx, &reservation{quotas: []string{"q", "r"}, namespace: "a", uses: two})
	release := f.begin(t.Context(), &reservation{quotas: []string{"q"}, namespace: "a", uses: two})
	f.begin(ctx, &reservation{quotas: []string{"q"}, namespace: "b", uses: two})
	reserved := f.reserved("q")
	if a, b := reserved["a"]["secrets"], reserved["b"]["secrets"]; len(reserved) != 2 || a.Value() != 4 || b.Value() != 2 {
		t.Errorf("the reservations are %v", reserved)
	}
	release()
	release() // the second release has no effect
	if remaining := f.reserved("q")["a"]["secrets"]; remaining.Value() != 2 || len(f.reserved("r")) != 1 || len(f.reserved("other")) != 0 {
		t.Errorf("after one release, the reservations are %v and %v", f.reserved("q"), f.reserved("r"))
	}
	cancel()
	eventually.True(t, "the end of the requests", func() bool { return len(f.reserved("q"))+len(f.reserved("r")) == 0 })
}

func TestKeepReserved(t *testing.T) {
	for name, tt := range map[string]struct{ usage, reserved, before, want corev1.ResourceList }{
		"no reservation":                          {amounts("secrets", "1"), nil, amounts("secrets", "4"), amounts("secrets", "1")},
		"reservation of the whole difference":     {amounts("secrets", "1"), amounts("secrets", "3"), amounts("secrets", "4"), amounts("secrets", "4")},
		"reservation of a part of the difference": {amounts("secrets", "1"), amounts("secrets", "1"), amounts("secrets", "4"), amounts("secrets", "2")},
		"reserved object already stored":          {amounts("secrets", "4"), amounts("secrets", "1"), amounts("secrets", "4"), amounts("secrets", "4")},
		"reservation of another resource":         {amounts("secrets", "1"), amounts("pods", "1"), amounts("secrets", "4"), amounts("secrets", "1")},
		"usage increased without a request":       {amounts("secrets", "5"), amounts("secrets", "1"), amounts("secrets", "4"), amounts("secrets", "5")},
		"first count":                             {amounts("secrets", "2"), amounts("secrets", "1"), nil, amounts("secrets", "2")},
	} {
		if got := keepReserved(tt.usage, tt.reserved, tt.before); !equality.Semantic.DeepEqual(got, tt.want) {
			t.Errorf("%s: usage is %v, want %v", name, got, tt.want)
		}
	}
}

func amounts(name corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{name: apiresource.MustParse(amount)}
}

func TestHandledPartsOfRequests(t *testing.T) {
	c := quotaPlugin{
		registry: generic.NewRegistry([]quota.Evaluator{generic.NewObjectCountEvaluator(corev1.Resource("secrets"), nil, "secrets")}),
		ignored:  map[schema.GroupResource]struct{}{corev1.Resource("events"): {}},
	}
	for name, tt := range map[string]struct {
		resource, subresource string
		operation             admission.Operation
		want                  []corev1.ResourceName
	}{
		"creation":            {"secrets", "", admission.Create, []corev1.ResourceName{"count/secrets", "secrets"}},
		"update":              {"secrets", "", admission.Update, nil},
		"status":              {"secrets", "status", admission.Update, nil},
		"subresource":         {"pods", "binding", admission.Create, nil},
		"kind without a rule": {"widgets", "", admission.Create, []corev1.ResourceName{"count/widgets"}},
		"kind without quotas": {"events", "", admission.Create, nil},
	} {
		request := admission.NewAttributesRecord(&corev1.Secret{}, nil, schema.GroupVersionKind{}, "shop", "one",
			corev1.SchemeGroupVersion.WithResource(tt.resource), tt.subresource, tt.operation, nil, false, nil)
		parts, uses, err := c.handled(t.Context(), &ledger{}, request)
		names := quota.ResourceNames(uses)
		slices.Sort(names)
		if err != nil || len(parts) > 1 || (len(parts) == 1) != (tt.want != nil) || !slices.Equal(names, tt.want) {
			t.Errorf("%s: %d parts reserve %v, %v, want %v", name, len(parts), names, err, tt.want)
		}
	}
}
