package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestLargePoliciesDelayNoOtherProject first creates a policy with many peers and ports, and then
// creates policies that exceed the limit on a user's selectors.
func TestLargePoliciesDelayNoOtherProject(t *testing.T) {
	s := tenants(t)
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), sleeper("pod", "{}", "{}"))
	s.Administrator().May("POST", kit.CorePath(s.Namespace, "pods"), sleeper("client", "{}", "{}"))
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), strings.Replace(sleeper("server", "{}", "{}"), "[sleep, infinity]", "[httpd, -f, -p, '8080', -h, /etc]", 1))
	shop := s.In(s.shop)
	s.In(s.evil).WaitPodRunning("pod")
	s.WaitPodRunning("client")
	url := "http://" + shop.WaitPodRunning("server").Status.PodIP + ":8080/passwd"
	s.WaitFetch("client", url, "root")
	refused := func() { t.Helper(); s.WaitBlocked("client", url) }
	policies := kit.GroupPath(networkingv1.GroupName, s.shop, "networkpolicies")
	const closed = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}}}"

	const count = 300
	s.mallory.May("POST", kit.GroupPath(networkingv1.GroupName, s.evil, "networkpolicies"), productPolicy(t, count))
	s.alice.May("POST", policies, closed)
	refused()
	rules, code, err := s.Shell(t, t.TempDir()).Run("nft list table ip slipway-policy | grep -c accept")
	var number int
	if _, scanErr := fmt.Sscan(rules, &number); err != nil || code != 0 || scanErr != nil || number > count {
		t.Errorf("a policy with %d peers and %[1]d ports needs %s rules (%v)", count, strings.TrimSpace(rules), err)
	}
	s.alice.May("DELETE", policies+"/closed", "")
	s.WaitFetch("client", url, "root")

	for i := range 4 {
		s.mallory.May("POST", kit.GroupPath(networkingv1.GroupName, s.evil, "networkpolicies"), selectorPolicy(t, i, 1500))
	}
	s.WaitFor("note in the status", func(context.Context) error {
		if status := s.MustSlipway("status"); !strings.Contains(status, "network policies are too large") || !strings.Contains(status, s.evil) {
			return errors.New(status)
		}
		return nil
	})
	s.alice.May("POST", policies, closed)
	refused()
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), sleeper("another", "{}", "{}"))
	shop.WaitPodRunning("another")
}

// productPolicy returns a policy with count selectors and count named ports in one rule.
func productPolicy(t *testing.T, count int) string {
	t.Helper()
	var rule networkingv1.NetworkPolicyIngressRule
	for i := range count {
		name := intstr.FromString(fmt.Sprint("port-", i))
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &name})
		rule.From = append(rule.From, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("label-", i): ""}}})
	}
	return policyJSON(t, "product", rule)
}

// selectorPolicy returns a policy with count rules. Each rule has a different selector that selects
// all pods in the cluster.
func selectorPolicy(t *testing.T, number, count int) string {
	t.Helper()
	var rules []networkingv1.NetworkPolicyIngressRule
	for i := range count {
		missing := metav1.LabelSelectorRequirement{Key: fmt.Sprintf("label-%d-%d", number, i), Operator: metav1.LabelSelectorOpDoesNotExist}
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{missing}},
		}}})
	}
	return policyJSON(t, fmt.Sprint("selectors-", number), rules...)
}

func policyJSON(t *testing.T, name string, rules ...networkingv1.NetworkPolicyIngressRule) string {
	t.Helper()
	text, err := json.Marshal(networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: rules},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
