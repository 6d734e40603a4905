package ingress

import (
	"maps"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestRoutesOfOtherProjectsAreNotAnIngresss(t *testing.T) {
	front := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "1"}}
	c := &Controller{made: cache.NewSharedIndexInformer(nil, &routev1.Route{}, 0, cache.Indexers{byOwner: ownersOf})}
	for _, at := range []struct{ namespace, name string }{{"shop", "mine"}, {"thief", "forged"}} {
		route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: at.name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(front, networkingv1.SchemeGroupVersion.WithKind("Ingress")),
		}}}
		if err := c.made.GetIndexer().Add(route); err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.owned(front)
	if names := slices.Collect(maps.Keys(found)); err != nil || !slices.Equal(names, []string{"mine"}) {
		t.Errorf("its routes are %v, %v", names, err)
	}
}

func TestAnEventHasAnEnd(t *testing.T) {
	if got := summary([]string{"a", "b"}); got != "a; b" {
		t.Errorf("two notes are %q", got)
	}
	if got := summary([]string{strings.Repeat("\u00e9", 100000)}); len(got) > maxSummary+3 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("a long note has %d bytes", len(got))
	}
}
