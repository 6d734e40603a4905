package ingress

import (
	"maps"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	routefake "github.com/openshift/client-go/route/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestOwnedExcludesRoutesOfOtherProjects(t *testing.T) {
	front := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "1"}}
	c := &Controller{children: cache.NewSharedIndexInformer(nil, &routev1.Route{}, 0, cache.Indexers{byOwner: ownersOf})}
	for _, at := range []struct{ namespace, name string }{{"shop", "mine"}, {"thief", "forged"}} {
		route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: at.name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(front, networkingv1.SchemeGroupVersion.WithKind("Ingress")),
		}}}
		if err := c.children.GetIndexer().Add(route); err != nil {
			t.Fatal(err)
		}
	}
	routes, err := c.owned(front)
	if names := slices.Collect(maps.Keys(routes)); err != nil || !slices.Equal(names, []string{"mine"}) {
		t.Errorf("its routes are %v, %v", names, err)
	}
}

func TestUpdateStatusListsEachRouterOnce(t *testing.T) {
	front := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
	client := fake.NewClientset(front)
	c := &Controller{kube: client, Address: "192.0.2.1"}
	admitted := func(host string, status corev1.ConditionStatus) routev1.RouteIngress {
		return routev1.RouteIngress{RouterCanonicalHostname: host, Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: status}}}
	}
	routes := map[string]*routev1.Route{
		"a": {Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{admitted("tin.example.com", corev1.ConditionTrue), admitted("gold.example.com", corev1.ConditionTrue)}}},
		"b": {Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{admitted("gold.example.com", corev1.ConditionTrue), admitted("", corev1.ConditionTrue), admitted("no.example.com", corev1.ConditionFalse)}}},
	}
	for range 3 { // routers write their status in any order
		ingress, err := client.NetworkingV1().Ingresses("shop").Get(t.Context(), "front", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.updateStatus(t.Context(), ingress, routes); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(routes["a"].Status.Ingress)
	}
	ingress, err := client.NetworkingV1().Ingresses("shop").Get(t.Context(), "front", metav1.GetOptions{})
	want := []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "gold.example.com"}, {Hostname: "tin.example.com"}}
	if err != nil || !equality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, want) {
		t.Errorf("the status is %v, %v", ingress.Status.LoadBalancer.Ingress, err)
	}
	writes := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "update" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("the status was written %d times", writes)
	}
}

// The oldest route for a host claims the host. Therefore, the controller must replace an old route
// that a user has created with an owner reference to an Ingress.
func TestOldRouteDoesNotGetHostOfIngress(t *testing.T) {
	front := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "1"}}
	want := routeOf(front, "new.example.com", networkingv1.HTTPIngressPath{Path: "/"}, routev1.RouteSpec{Host: "new.example.com", Path: "/"})
	old := want.DeepCopy()
	old.UID, old.Spec.Host = "old", "old.example.com"
	other := want.DeepCopy()
	other.Name, other.UID = "other", "other"
	routes := routefake.NewClientset(old, other)
	c := &Controller{routes: routes}
	same := other.DeepCopy()
	same.Spec.To.Name, same.UID = "web", ""
	present := map[string]*routev1.Route{old.Name: old, other.Name: other}
	if notes, err := c.apply(t.Context(), front, present, []*routev1.Route{want, same}, nil); err != nil || len(notes) > 0 {
		t.Fatalf("%v, %v", notes, err)
	}
	for name, uid := range map[string]string{want.Name: "", "other": "other"} {
		route, err := routes.RouteV1().Routes("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || route.Spec.Host != "new.example.com" || string(route.UID) != uid {
			t.Errorf("route %q is %+v, %v, want a route with the UID %q", name, route, err, uid)
		}
	}
}

func TestSummaryIsLimited(t *testing.T) {
	if got := summary([]string{"a", "b"}); got != "a; b" {
		t.Errorf("two notes are %q", got)
	}
	if got := summary([]string{strings.Repeat("\u00e9", 100000)}); len(got) > maxSummary+3 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("a long note has %d bytes", len(got))
	}
}

func TestRejectedListsRejectingRouters(t *testing.T) {
	statusWith := func(status corev1.ConditionStatus) routev1.RouteStatus {
		return routev1.RouteStatus{Ingress: []routev1.RouteIngress{{RouterName: "gold", Host: "a.example.com", Conditions: []routev1.RouteIngressCondition{
			{Type: routev1.RouteAdmitted, Status: status, Reason: "RouteNotAdmitted", Message: "wildcard routes are not allowed"},
		}}}}
	}
	got := rejected(map[string]*routev1.Route{"b": {Status: statusWith(corev1.ConditionFalse)}, "a": {Status: statusWith(corev1.ConditionTrue)}, "c": {}})
	if want := []string{`router "gold" does not admit host "a.example.com": RouteNotAdmitted: wildcard routes are not allowed`}; !slices.Equal(got, want) {
		t.Errorf("rejections are %q", got)
	}
}
