package network

import (
	"net/netip"
	"regexp"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
)

// FuzzEgressNetworkPolicy checks that every accepted rule can be written into an nft script.
func FuzzEgressNetworkPolicy(f *testing.F) {
	f.Add("Allow", "1.2.3.0/24", "")
	f.Add("Deny", "", "*.example.com")
	f.Add("Deny", "", "a\"; flush ruleset; #")
	f.Add("Allow", "::ffff:1.2.3.4/128", "")
	f.Add("Allow", "fe80::%eth0/64", "")
	name := regexp.MustCompile(`^(\*\.)?[a-z0-9.-]+$`)
	f.Fuzz(func(t *testing.T, kind, cidr, dnsName string) {
		rule := networkv1.EgressNetworkPolicyRule{
			Type: networkv1.EgressNetworkPolicyRuleType(kind), To: networkv1.EgressNetworkPolicyPeer{CIDRSelector: cidr, DNSName: dnsName},
		}
		policy := &networkv1.EgressNetworkPolicy{Spec: networkv1.EgressNetworkPolicySpec{Egress: []networkv1.EgressNetworkPolicyRule{rule}}}
		if len(validateEgressNetworkPolicy(t.Context(), policy, nil)) > 0 {
			return
		}
		if kind != "Allow" && kind != "Deny" || (cidr == "") == (dnsName == "") {
			t.Errorf("accepted rule %+v", rule)
		}
		if dnsName != "" && (!name.MatchString(dnsName) || len(dnsName) > 255) {
			t.Errorf("accepted name %q", dnsName)
		}
		if cidr != "" {
			if network, err := netip.ParsePrefix(cidr); err != nil || network.Masked() != network {
				t.Errorf("accepted network %q", cidr)
			}
		}
	})
}
