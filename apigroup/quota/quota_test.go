package quota

import (
	"testing"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateSelector(t *testing.T) {
	labels := func(pairs ...string) *metav1.LabelSelector {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, pair := range pairs {
			selector.MatchLabels[pair] = "x"
		}
		return selector
	}
	for name, tt := range map[string]struct {
		selector quotav1.ClusterResourceQuotaSelector
		want     string
	}{
		"labels":             {quotav1.ClusterResourceQuotaSelector{LabelSelector: labels("team")}, ""},
		"annotations":        {quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"openshift.io/requester": "eve"}}, ""},
		"nothing":            {quotav1.ClusterResourceQuotaSelector{}, "selector"},
		"every project":      {quotav1.ClusterResourceQuotaSelector{LabelSelector: labels()}, "selector.labels"},
		"invalid label":      {quotav1.ClusterResourceQuotaSelector{LabelSelector: labels("a b")}, "selector.labels.matchLabels"},
		"invalid annotation": {quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a b": ""}}, "selector.annotations"},
	} {
		errs := validateSelector(&tt.selector, field.NewPath("selector"))
		if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || errs[0].Field != tt.want) {
			t.Errorf("%s: %v, want one at %q", name, errs, tt.want)
		}
	}
}

func TestSelectsNeedsLabelsAndAnnotations(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"openshift.io/requester": "eve@example.com"},
	}}
	requester := map[string]string{"openshift.io/requester": "eve@example.com"}
	for name, tt := range map[string]struct {
		selector quotav1.ClusterResourceQuotaSelector
		want     bool
	}{
		"labels":           {quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}, true},
		"annotations":      {quotav1.ClusterResourceQuotaSelector{AnnotationSelector: requester}, true},
		"both":             {quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, AnnotationSelector: requester}, true},
		"only one matches": {quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}, AnnotationSelector: requester}, false},
		"neither":          {quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a": "b"}}, false},
	} {
		if got := selects(&tt.selector, namespace); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReviewsAreNotCounted(t *testing.T) {
	for resource, want := range map[string]bool{
		"localresourceaccessreviews.authorization.openshift.io": true, "localsubjectaccessreviews.authorization.k8s.io": true,
		"podsecuritypolicyreviews.security.openshift.io": true, "rolebindings.authorization.openshift.io": false, "reviews.example.com": false,
	} {
		if got := isReview(schema.ParseGroupResource(resource)); got != want {
			t.Errorf("%s: %t", resource, got)
		}
	}
}
