package policy

import (
	"fmt"
	"regexp"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// FuzzPolicy verifies that no text in a policy can add other nft syntax to the rules, even if the
// API server accepted any text. This is important because the node passes the rules to nft as a
// script.
func FuzzPolicy(f *testing.F) {
	f.Add("10.0.0.0/8", "10.1.0.0/16", "http", "team", "blue", int32(80), int32(90), byte(0))
	f.Add("0.0.0.0/0", "", "", "", "", int32(-1), int32(0), byte(1))
	f.Add("\"; flush ruleset; #", "::/0", "\n", "a b", "{", int32(65535), int32(1), byte(2))
	safe := regexp.MustCompile(`^[a-z0-9 @{},./!=-]*$`)
	f.Fuzz(func(t *testing.T, cidr, except, portName, key, value string, port, endPort int32, protocolNumber byte) {
		protocol := []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}[protocolNumber%4]
		number, text := intstr.FromInt32(port), intstr.FromString(portName)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		peers := []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: []string{except}}}, {IPBlock: &networkingv1.IPBlock{CIDR: except}},
			{PodSelector: selector}, {NamespaceSelector: selector},
		}
		ports := []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &number, EndPort: &endPort}, {Protocol: &protocol, Port: &text}}
		s := shop()
		s.policies = []*networkingv1.NetworkPolicy{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
			Spec: networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}},
				Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: ports}},
			},
		}}
		rules := compile(s)
		for _, d := range policyDirections()[:2] {
			if rules.text(d, "10.128.0.2") == "not isolated" {
				t.Errorf("a pod of the policy is not isolated at %s", d)
			}
		}
		for name, chain := range rules.chains {
			for _, rule := range chain.rules {
				if !safe.MatchString(rule) {
					t.Errorf("chain %s: %q", name, rule)
				}
			}
		}
		for name, set := range rules.sets {
			for element := range set.elements {
				if !safe.MatchString(fmt.Sprint(name, element)) {
					t.Errorf("set %s: %q", name, element)
				}
			}
		}
	})
}

// FuzzFirewall verifies that no text in an egress firewall can add other nft syntax to the rules.
func FuzzFirewall(f *testing.F) {
	f.Add("10.0.0.0/8", "www.foo.com", "Allow", "Deny", true)
	f.Add("0.0.0.0/32", "*.Foo.com.", "Deny", "Allow", false)
	f.Add("::/0\"; flush ruleset; #", "}\n", "", "{", false)
	safe := regexp.MustCompile(`^[a-z0-9 @{},./:!=-]*$`)
	f.Fuzz(func(t *testing.T, cidr, name, first, second string, isIPv6 bool) {
		s := shop()
		if isIPv6 {
			s.family = ipfamily.IPv6
		}
		firewall := &networkv1.EgressNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
		for _, kind := range []string{first, second} {
			for _, to := range []networkv1.EgressNetworkPolicyPeer{{CIDRSelector: cidr}, {DNSName: name}} {
				firewall.Spec.Egress = append(firewall.Spec.Egress, networkv1.EgressNetworkPolicyRule{Type: networkv1.EgressNetworkPolicyRuleType(kind), To: to})
			}
		}
		s.firewalls = []*networkv1.EgressNetworkPolicy{firewall}
		for name, chain := range compile(s).chains {
			for _, rule := range chain.rules {
				if !safe.MatchString(rule) {
					t.Errorf("chain %s: %q", name, rule)
				}
			}
		}
	})
}
