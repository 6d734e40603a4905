package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// shop returns a cluster that has two projects with pods on this node and on another node. The
// project "default" has no pods.
func shop() snapshot {
	http := map[portName]int32{{"tcp", "http"}: 8080}
	return snapshot{
		namespaces: map[string]labels.Set{"shop": {"team": "blue"}, "bank": {"team": "red"}, "default": {"name": "default"}},
		hosts:      []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("10.130.0.0/23")},
		pods: []pod{
			{namespace: "shop", labels: labels.Set{"app": "web"}, ports: http, address: netip.MustParseAddr("10.128.0.2"), local: true},
			{namespace: "shop", labels: labels.Set{"app": "db"}, address: netip.MustParseAddr("10.128.0.3"), local: true},
			{namespace: "shop", labels: labels.Set{"app": "web"}, ports: http, address: netip.MustParseAddr("10.129.0.2")},
			{namespace: "bank", labels: labels.Set{"app": "web"}, address: netip.MustParseAddr("10.128.0.4"), local: true},
		},
	}
}

// policyOf returns a policy in the shop project. spec is its spec in YAML.
func policyOf(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	return policy
}

// text returns the rules that a pod's packets traverse, with the names of chains and sets replaced
// by their content.
func (r *ruleset) text(d direction, address string) string {
	name, isolated := r.pods[d][netip.MustParseAddr(address)]
	if !isolated {
		return "not isolated"
	}
	var lines []string
	for _, rule := range r.chains[name].rules {
		target, isJump := strings.CutPrefix(rule, "jump ")
		if !isJump {
			lines = append(lines, rule)
			continue
		}
		for _, rule := range r.chains[target].rules {
			for name, set := range r.sets {
				rule = strings.ReplaceAll(rule, "@"+name, "["+strings.Join(sortedKeys(set.elements), ", ")+"]")
			}
			lines = append(lines, rule)
		}
	}
	return strings.Join(lines, "\n")
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		direction  direction
		pod, want  string
	}{
		{"deny by default", `{podSelector: {}, policyTypes: [Ingress]}`, ingress, "10.128.0.3", "counter drop"},
		{"ingress only", `{podSelector: {}, policyTypes: [Ingress]}`, egress, "10.128.0.3", "not isolated"},
		{"another project", `{podSelector: {}, policyTypes: [Ingress]}`, ingress, "10.128.0.4", "not isolated"},
		{"pod of another node", `{podSelector: {}, policyTypes: [Ingress]}`, ingress, "10.129.0.2", "not isolated"},
		{"pod that is not selected", `{podSelector: {matchLabels: {app: web}}}`, ingress, "10.128.0.3", "not isolated"},
		{"everything", `{podSelector: {}, ingress: [{}]}`, ingress, "10.128.0.2", "accept\ncounter drop"},
		{"same project", `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`, ingress, "10.128.0.3",
			"ip saddr [10.128.0.2, 10.128.0.3, 10.129.0.2] accept\ncounter drop"},
		{"pods of the same project", `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`, ingress, "10.128.0.3",
			"ip saddr [10.128.0.2, 10.129.0.2] accept\ncounter drop"},
		{"other projects", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: red}}}]}]}`, ingress, "10.128.0.3",
			"ip saddr [10.128.0.4] accept\ncounter drop"},
		{"combined selectors", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}`, ingress, "10.128.0.3",
			"ip saddr [10.128.0.2, 10.128.0.4, 10.129.0.2] accept\ncounter drop"},
		{"all pods of the project default, and the hosts", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {name: default}}}], ports: [{port: 80}]}]}`,
			ingress, "10.128.0.3", "ip saddr [] tcp dport { 80 } accept\nip saddr [10.130.0.0/23, 192.0.2.1/32] tcp dport { 80 } accept\ncounter drop"},
		{"all projects, and the hosts", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}, podSelector: {}}]}]}`, ingress, "10.128.0.3",
			"ip saddr [10.128.0.2, 10.128.0.3, 10.128.0.4, 10.129.0.2] accept\nip saddr [10.130.0.0/23, 192.0.2.1/32] accept\ncounter drop"},
		{"some pods of the project default", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {name: default}}, podSelector: {matchLabels: {app: web}}}]}]}`,
			ingress, "10.128.0.3", "ip saddr [] accept\ncounter drop"},
		{"egress to the project default", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {name: default}}}]}]}`,
			egress, "10.128.0.3", "ip daddr [] accept\ncounter drop"},
		{"selectors of separate peers", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: red}}}, {podSelector: {matchLabels: {app: db}}}]}]}`,
			ingress, "10.128.0.3", "ip saddr [10.128.0.3, 10.128.0.4] accept\ncounter drop"},
		{"ports", `{podSelector: {}, ingress: [{ports: [{port: 443}, {port: 80, protocol: TCP}, {port: 8000, endPort: 8100}, {port: 53, protocol: UDP}, {port: 7, protocol: SCTP}]}]}`,
			ingress, "10.128.0.3", "sctp dport { 7 } accept\ntcp dport { 80, 443, 8000-8100 } accept\nudp dport { 53 } accept\ncounter drop"},
		{"overlapping ports", `{podSelector: {}, ingress: [{ports: [{port: 80}, {port: 70, endPort: 81}, {port: 82}]}]}`,
			ingress, "10.128.0.3", "tcp dport { 70-82 } accept\ncounter drop"},
		{"all ports of a protocol", `{podSelector: {}, ingress: [{ports: [{protocol: UDP}, {port: 5, protocol: UDP}]}]}`,
			ingress, "10.128.0.3", "meta l4proto udp accept\ncounter drop"},
		{"named port", `{podSelector: {}, ingress: [{ports: [{port: http}]}]}`, ingress, "10.128.0.2",
			"ip daddr . meta l4proto . th dport [10.128.0.2 . tcp . 8080, 10.129.0.2 . tcp . 8080] accept\ncounter drop"},
		{"unknown named port", `{podSelector: {}, ingress: [{ports: [{port: ftp}]}]}`, ingress, "10.128.0.2", "ip daddr . meta l4proto . th dport [] accept\ncounter drop"},
		{"blocks", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}, {ipBlock: {cidr: 10.1.0.0/16}}, {ipBlock: {cidr: "fd00::/8"}}]}]}`,
			ingress, "10.128.0.3", "ip saddr { 10.0.0.0/8 } accept\ncounter drop"},
		{"block with exceptions", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.2.0/24, 10.1.0.0/16]}}], ports: [{port: 1}]}]}`,
			ingress, "10.128.0.3", "ip saddr 10.0.0.0/8 ip saddr != { 10.1.0.0/16 } tcp dport { 1 } accept\ncounter drop"},
		{"only an IPv6 block", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: "fd00::/8"}}]}]}`, ingress, "10.128.0.3", "counter drop"},
		{"egress", `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: http}]}]}`, egress, "10.128.0.3",
			"ip daddr [10.128.0.2, 10.129.0.2] ip daddr . meta l4proto . th dport [10.128.0.2 . tcp . 8080, 10.129.0.2 . tcp . 8080] accept\ncounter drop"},
		{"egress does not isolate ingress", `{podSelector: {}, policyTypes: [Egress]}`, ingress, "10.128.0.3", "not isolated"},
		{"egress by its rules", `{podSelector: {}, egress: [{}]}`, egress, "10.128.0.3", "accept\ncounter drop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shop()
			s.policies = []*networkingv1.NetworkPolicy{policyOf(t, "one", c.spec)}
			if diff := cmp.Diff(c.want, compile(s).text(c.direction, c.pod)); diff != "" {
				t.Errorf("rules of %s (-want +got):\n%s", c.pod, diff)
			}
		})
	}
}

func TestPoliciesOfPodAreCombined(t *testing.T) {
	s := shop()
	s.policies = []*networkingv1.NetworkPolicy{
		policyOf(t, "none", `{podSelector: {}, policyTypes: [Ingress, Egress]}`),
		policyOf(t, "web", `{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}`),
	}
	r := compile(s)
	for pod, want := range map[string]string{"10.128.0.2": "tcp dport { 80 } accept\ncounter drop", "10.128.0.3": "counter drop"} {
		if got := r.text(ingress, pod); got != want {
			t.Errorf("ingress of %s: got %q, want %q", pod, got, want)
		}
	}
	if got := r.text(egress, "10.128.0.2"); got != "counter drop" {
		t.Errorf("egress: got %q", got)
	}
}

func TestUnknownPodIsIsolatedInProjectsWithPolicies(t *testing.T) {
	s := shop()
	s.policies = []*networkingv1.NetworkPolicy{policyOf(t, "db", `{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {}}]}]}`)}
	s.pods = append(s.pods,
		pod{namespace: "shop", address: netip.MustParseAddr("10.128.0.8"), local: true, unknown: true},
		pod{namespace: "bank", address: netip.MustParseAddr("10.128.0.9"), local: true, unknown: true})
	r := compile(s)
	for _, d := range []direction{egress, ingress} {
		if got := r.text(d, "10.128.0.8"); got != "counter drop" {
			t.Errorf("%s of a pod of a project with policies: got %q", d, got)
		}
		if got := r.text(d, "10.128.0.9"); got != "not isolated" {
			t.Errorf("%s of a pod of a project without policies: got %q", d, got)
		}
	}
	if got := r.text(ingress, "10.128.0.3"); strings.Contains(got, "10.128.0.8") {
		t.Errorf("an unknown pod is a peer: %q", got)
	}
}

func TestManyPodsShareRules(t *testing.T) {
	s := snapshot{namespaces: map[string]labels.Set{"shop": {}}}
	address := netip.MustParseAddr("10.128.0.2")
	for range 400 {
		s.pods = append(s.pods, pod{namespace: "shop", labels: labels.Set{"app": "web"}, address: address, local: true})
		address = address.Next()
	}
	s.policies = []*networkingv1.NetworkPolicy{policyOf(t, "web", `{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`)}
	r := compile(s)
	rules := 0
	for _, chain := range r.chains {
		rules += len(chain.rules)
	}
	if rules != 3 {
		t.Errorf("400 pods that can reach each other need %d rules, want 3", rules)
	}
}

func TestRuleCountIsNotTheProductOfPeersAndPorts(t *testing.T) {
	s := shop()
	var policy networkingv1.NetworkPolicySpec
	policy.Ingress = make([]networkingv1.NetworkPolicyIngressRule, 1)
	const count = 100
	for i := range count {
		name := intstr.FromString(fmt.Sprint("port-", i))
		policy.Ingress[0].Ports = append(policy.Ingress[0].Ports, networkingv1.NetworkPolicyPort{Port: &name})
		policy.Ingress[0].From = append(policy.Ingress[0].From, networkingv1.NetworkPolicyPeer{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("label-", i): ""}},
		})
	}
	s.policies = []*networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"}, Spec: policy}}
	rules := 0
	for _, chain := range compile(s).chains {
		rules += len(chain.rules)
	}
	if rules > count {
		t.Errorf("%d peers and %[1]d ports need %d rules", count, rules)
	}
}

// manyRules returns a policy with count rules whose selectors differ.
func manyRules(t *testing.T, project, name string, count int) *networkingv1.NetworkPolicy {
	t.Helper()
	policy := policyOf(t, name, `{podSelector: {}}`)
	policy.Namespace = project
	for i := range count {
		policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint(project, name, i): ""}},
		}}})
	}
	return policy
}

// manyValues returns policies in the shop project whose selectors have count values each.
func manyValues(t *testing.T, policies, count int) (result []*networkingv1.NetworkPolicy) {
	t.Helper()
	requirement := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	for i := range count {
		requirement.Values = append(requirement.Values, fmt.Sprint("value-", i))
	}
	for i := range policies {
		policy := policyOf(t, fmt.Sprint("policy-", i), "{}")
		policy.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{requirement}
		result = append(result, policy)
	}
	return result
}

func TestTooLargePoliciesCloseTheProjectOnly(t *testing.T) {
	const share = minWork / 12
	for name, c := range map[string]struct {
		requesters map[string]string
		policies   []*networkingv1.NetworkPolicy
		want       []string
	}{
		"one policy": {nil, []*networkingv1.NetworkPolicy{manyRules(t, "shop", "a", minWork), policyOf(t, "small", "{podSelector: {}}")}, []string{"shop"}},
		"many policies": {nil, []*networkingv1.NetworkPolicy{
			manyRules(t, "shop", "a", share), manyRules(t, "shop", "b", share), manyRules(t, "shop", "c", share), manyRules(t, "bank", "a", share),
		}, []string{"shop"}},
		"projects of one user, the largest": {map[string]string{"shop": "mallory", "bank": "mallory"}, []*networkingv1.NetworkPolicy{
			manyRules(t, "bank", "a", 2*share), manyRules(t, "shop", "a", share), manyRules(t, "shop", "b", 10),
		}, []string{"bank"}},
		"selectors with many values": {nil, manyValues(t, 400, minWork/100), []string{"shop"}},
		"large, but not too large":   {nil, []*networkingv1.NetworkPolicy{manyRules(t, "shop", "a", share), manyRules(t, "bank", "b", share)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop()
			s.policies, s.requesters = c.policies, c.requesters
			r := compile(s)
			if diff := cmp.Diff(c.want, r.closed); diff != "" {
				t.Errorf("closed projects (-want +got):\n%s", diff)
			}
			for _, p := range s.pods {
				for _, d := range []direction{egress, ingress} {
					rules := r.chains[r.pods[d][p.address]].rules
					if closed := slices.Equal(rules, []string{"counter drop"}); p.local && closed != slices.Contains(c.want, p.namespace) {
						t.Errorf("%s of %s in project %s: closed: %t", d, p.address, p.namespace, closed)
					}
				}
			}
		})
	}
}

func TestRulesWithEqualSelectorsCountOnce(t *testing.T) {
	s := shop()
	const rules = 200
	for i := range 20 {
		policy := manyRules(t, "shop", "a", rules)
		policy.Name = fmt.Sprint("copy-", i)
		s.policies = append(s.policies, policy)
	}
	// The ruleset contains one set for each rule, the sets of every ruleset, and openSet.
	if r := compile(s); len(r.closed) != 0 || len(r.sets) != rules+len(newRuleset(ipfamily.IPv4).sets)+1 {
		t.Errorf("%d sets, closed projects: %v", len(r.sets), r.closed)
	}
}

func TestProjectsWithoutPodsCostNothing(t *testing.T) {
	s := shop()
	const projects = 1000
	for i := range projects {
		s.namespaces[fmt.Sprint("empty-", i)] = nil
	}
	policy := manyRules(t, "shop", "a", minWork/projects+2*workPerPod)
	s.policies = []*networkingv1.NetworkPolicy{policy}
	if r := compile(s); len(r.closed) != 0 {
		t.Errorf("%d rules with selectors close the project", len(policy.Spec.Ingress))
	}
}

func TestFirstContainerWithNameDecidesItsPort(t *testing.T) {
	port := func(name string, number int32) corev1.Container {
		return corev1.Container{Ports: []corev1.ContainerPort{{Name: name, ContainerPort: number}, {ContainerPort: 1}}}
	}
	got := namedPorts([]corev1.Container{port("http", 80), port("http", 81), port("admin", 82)})
	if diff := cmp.Diff(map[portName]int32{{"tcp", "http"}: 80, {"tcp", "admin"}: 82}, got, cmp.AllowUnexported(portName{})); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// TestEmptySelectorInTheDefaultProjectSelectsHosts selects all pods of the policy's own project.
func TestEmptySelectorInTheDefaultProjectSelectsHosts(t *testing.T) {
	s := shop()
	s.pods = append(s.pods, pod{namespace: "default", address: netip.MustParseAddr("10.128.0.7"), local: true})
	policy := policyOf(t, "same-project", `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`)
	policy.Namespace = "default"
	s.policies = []*networkingv1.NetworkPolicy{policy}
	const want = "ip saddr [10.128.0.7] accept\nip saddr [10.130.0.0/23, 192.0.2.1/32] accept\ncounter drop"
	if diff := cmp.Diff(want, compile(s).text(ingress, "10.128.0.7")); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestCompileIPv6 compiles a cluster whose pods have an IPv4 and an IPv6 address.
func TestCompileIPv6(t *testing.T) {
	s := shop()
	for _, p := range s.pods {
		octets := p.address.As4()
		p.address = netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 7: octets[1], 15: octets[3]})
		s.pods = append(s.pods, p)
	}
	s.policies = []*networkingv1.NetworkPolicy{policyOf(t, "one", `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress, Egress],
		ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: "2001:db8::/32"}}, {ipBlock: {cidr: 10.0.0.0/8}}, {ipBlock: {cidr: "fd00::/8", except: ["fd02::/16"]}}]}],
		egress: [{ports: [{port: http}]}]}`)}
	rules := compile(s.of(ipfamily.IPv6))
	const db = "fd01:0:0:80::3"
	want := "ip6 saddr fd00::/8 ip6 saddr != { fd02::/16 } accept\n" +
		"ip6 saddr [fd01:0:0:80::2, fd01:0:0:80::3, fd01:0:0:81::2] accept\nip6 saddr { 2001:db8::/32 } accept\ncounter drop"
	if diff := cmp.Diff(want, rules.text(ingress, db)); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
	want = "ip6 daddr . meta l4proto . th dport [fd01:0:0:80::2 . tcp . 8080, fd01:0:0:81::2 . tcp . 8080] accept\ncounter drop"
	if diff := cmp.Diff(want, rules.text(egress, db)); diff != "" {
		t.Errorf("egress (-want +got):\n%s", diff)
	}
	for _, f := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
		for name, set := range compile(s.of(f)).sets {
			for element := range set.elements {
				if strings.Contains(element, ":") != (f == ipfamily.IPv6) {
					t.Errorf("set %s of %s has %s", name, f.Header(), element)
				}
			}
		}
	}
}
