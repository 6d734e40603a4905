package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// firewallOf returns a policy with rules such as "Allow 1.2.3.0/24" and "Deny www.foo.com".
func firewallOf(namespace, name string, rules ...string) *networkv1.EgressNetworkPolicy {
	policy := &networkv1.EgressNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, text := range rules {
		kind, to, _ := strings.Cut(text, " ")
		rule := networkv1.EgressNetworkPolicyRule{Type: networkv1.EgressNetworkPolicyRuleType(kind)}
		if strings.Contains(to, "/") {
			rule.To.CIDRSelector = to
		} else {
			rule.To.DNSName = to
		}
		policy.Spec.Egress = append(policy.Spec.Egress, rule)
	}
	return policy
}

// firewallText returns the rules for a pod's external packets, with set names replaced by the sets'
// content.
func (r *ruleset) firewallText(address string) string {
	name, restricted := r.pods[external][netip.MustParseAddr(address)]
	if !restricted {
		return "not restricted"
	}
	var lines []string
	for _, rule := range r.chains[name].rules {
		for name, set := range r.sets {
			rule = strings.ReplaceAll(rule, "@"+name, "["+strings.Join(sortedKeys(set.elements), ", ")+"]")
		}
		lines = append(lines, rule)
	}
	return strings.Join(lines, "\n")
}

func TestCompileFirewall(t *testing.T) {
	foo := map[string][]netip.Addr{
		"www.foo.com": {netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8")}, "*.bar.org": {netip.MustParseAddr("192.0.2.9")},
	}
	const unicast = " ip daddr != { 169.254.0.0/16, 100.100.100.200, 168.63.129.16, 192.0.0.192 } "
	for _, tt := range []struct {
		name      string
		firewalls []*networkv1.EgressNetworkPolicy
		netIDs    map[string]uint32
		want      string
	}{
		{"example of the guide", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "default", "Allow 1.2.3.0/24", "Allow www.foo.com", "Deny 0.0.0.0/0")}, nil,
			"ip daddr [192.0.2.7, 192.0.2.8]" + unicast + "accept\nip daddr { 1.2.3.0/24 } accept\ncounter drop"},
		{"example of the guide, reversed", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "default", "Deny 0.0.0.0/0", "Allow www.foo.com", "Allow 1.2.3.0/24")}, nil,
			"counter drop\nip daddr [192.0.2.7, 192.0.2.8]" + unicast + "accept\nip daddr { 1.2.3.0/24 } accept"},
		{"wildcard, and a denied name", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "default", "Deny WWW.foo.com", "Allow *.bar.org", "Deny 0.0.0.0/0")}, nil,
			"ip daddr [192.0.2.7, 192.0.2.8] counter drop\nip daddr [192.0.2.9]" + unicast + "accept\ncounter drop"},
		{"unresolved name", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "default", "Allow new.foo.com")}, nil, "ip daddr []" + unicast + "accept"},
		{"overlapping networks of a run", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Deny 10.1.0.0/16", "Deny 10.0.0.0/8", "Deny 192.0.2.0/24", "Allow 192.0.2.1/32")}, nil,
			"ip daddr { 10.0.0.0/8, 192.0.2.0/24 } counter drop\nip daddr { 192.0.2.1/32 } accept"},
		{"0.0.0.0/32 means everything, as in OpenShift 3.11", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Deny 0.0.0.0/32")}, nil, "counter drop"},
		{"network of IPv6", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Deny ::/0", "Allow 192.0.2.1/32")}, nil, "ip daddr { 192.0.2.1/32 } accept"},
		{"two policies", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Allow 0.0.0.0/0"), firewallOf("shop", "b", "Allow 0.0.0.0/0")}, nil, "counter drop"},
		{"a second policy without rules", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Allow 1.2.3.0/24"), firewallOf("shop", "b")}, nil, "ip daddr { 1.2.3.0/24 } accept"},
		{"no rules", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a")}, nil, "not restricted"},
		{"another project", []*networkv1.EgressNetworkPolicy{firewallOf("bank", "a", "Deny 0.0.0.0/0")}, nil, "not restricted"},
		{"global project", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Deny 0.0.0.0/0")}, map[string]uint32{"shop": 0}, "not restricted"},
		{"joined project", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Allow 0.0.0.0/0")}, map[string]uint32{"shop": 12, "bank": 12}, "counter drop"},
		{"project with its own network", []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Allow 0.0.0.0/0")}, map[string]uint32{"shop": 12, "bank": 13}, "accept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop()
			s.firewalls, s.netIDs, s.names = tt.firewalls, tt.netIDs, foo
			if diff := cmp.Diff(tt.want, compile(s).firewallText("10.128.0.2")); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultProjectHasNoFirewall(t *testing.T) {
	s := shop()
	s.pods = append(s.pods, pod{namespace: "default", address: netip.MustParseAddr("10.128.0.9"), local: true})
	s.firewalls = []*networkv1.EgressNetworkPolicy{firewallOf("default", "a", "Deny 0.0.0.0/0")}
	if got := compile(s).firewallText("10.128.0.9"); got != "not restricted" {
		t.Errorf("rules: %s", got)
	}
	if problem := s.firewallsByProject()["default"].problem; !strings.Contains(problem, "have no effect") {
		t.Errorf("problem: %q", problem)
	}
}

func TestFirewallsOfUnknownPodsAreEnforced(t *testing.T) {
	s := shop()
	s.pods = append(s.pods, pod{namespace: "shop", address: netip.MustParseAddr("10.128.0.8"), local: true, unknown: true})
	s.firewalls = []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", "Deny 0.0.0.0/0")}
	if got := compile(s).firewallText("10.128.0.8"); got != "counter drop" {
		t.Errorf("rules: %s", got)
	}
}

// allows is the reference implementation of a firewall: the first rule that contains the address
// applies.
func allows(policy *networkv1.EgressNetworkPolicy, names map[string][]netip.Addr, address netip.Addr) bool {
	for _, rule := range policy.Spec.Egress {
		matches := slices.Contains(names[rule.To.DNSName], address)
		if rule.To.CIDRSelector != "" {
			matches = netip.MustParsePrefix(rule.To.CIDRSelector).Contains(address)
		}
		if matches {
			return rule.Type == networkv1.EgressNetworkPolicyRuleAllow
		}
	}
	return true
}

// passes reports whether compiled rules accept packets to an address that is not link-local. In the
// rules, set names are replaced by the sets' content.
func passes(rules string, address netip.Addr) bool {
	for _, rule := range strings.Split(rules, "\n") {
		fields := strings.FieldsFunc(rule, func(r rune) bool { return strings.ContainsRune(" ,[]{}", r) })
		verdict, fields := fields[len(fields)-1], fields[:len(fields)-1]
		if i := slices.Index(fields, "!="); i >= 0 {
			fields = fields[:i-2]
		}
		matches := len(fields) < 2 // "accept", "counter drop"
		for _, field := range fields {
			prefix, err := netip.ParsePrefix(field)
			if err != nil {
				single, _ := netip.ParseAddr(field)
				prefix = netip.PrefixFrom(single, 32)
			}
			matches = matches || prefix.Contains(address)
		}
		if matches {
			return verdict == "accept"
		}
	}
	return true
}

func TestCompiledFirewallDecidesAsItsModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, byte(random.IntN(4)), byte(random.IntN(8))})
	}
	for range 300 {
		names := map[string][]netip.Addr{}
		var rules []string
		for range 1 + random.IntN(8) {
			to := netip.PrefixFrom(address(), []int{0, 8, 22, 24, 30, 32}[random.IntN(6)]).Masked().String()
			if random.IntN(3) == 0 {
				to = fmt.Sprintf("name-%d.example.com", random.IntN(3))
				names[to] = []netip.Addr{address(), address()}
			}
			rules = append(rules, []string{"Allow", "Deny"}[random.IntN(2)]+" "+to)
		}
		s, policy := shop(), firewallOf("shop", "a", rules...)
		s.firewalls, s.names = []*networkv1.EgressNetworkPolicy{policy}, names
		compiled := compile(s).firewallText("10.128.0.2")
		for range 40 {
			to := address()
			if want, got := allows(policy, names, to), passes(compiled, to); got != want {
				t.Fatalf("%s: got %t, want %t\nrules %q\nnames %v\ncompiled:\n%s", to, got, want, rules, names, compiled)
			}
		}
	}
}

func TestRulesOfALargeFirewallShareASet(t *testing.T) {
	var rules []string
	for i := range 1000 {
		rules = append(rules, fmt.Sprintf("Allow 10.%d.%d.0/24", i/250, i%250))
	}
	s := shop()
	s.firewalls = []*networkv1.EgressNetworkPolicy{firewallOf("shop", "a", append(rules, "Deny 0.0.0.0/0")...)}
	if got := strings.Count(compile(s).firewallText("10.128.0.2"), "\n") + 1; got != 2 {
		t.Errorf("1000 networks need %d rules, want 2", got)
	}
}

func TestCompileFirewallIPv6(t *testing.T) {
	address, dual := netip.MustParseAddr("fd01::2"), shop()
	for name, tt := range map[string]struct {
		rules []string
		want  string
	}{
		"names and networks": {[]string{"Allow www.foo.com", "Allow 2001:db8::/32", "Allow 1.2.3.0/24", "Deny ::/0"},
			"ip6 daddr [2001:db8::7] ip6 daddr != { fe80::/10, fd00:ec2::254, fd20:ce::254 } accept\nip6 daddr { 2001:db8::/32 } accept\ncounter drop"},
		"an address":                    {[]string{"Deny 2001:db8::7/128"}, "ip6 daddr { 2001:db8::7/128 } counter drop"},
		"a closed project stays closed": {[]string{"Allow 1.2.3.0/24", "Deny 0.0.0.0/0"}, "counter drop"},
		"an open project":               {[]string{"Deny 1.2.3.0/24", "Allow 0.0.0.0/0"}, ""},
	} {
		s := dual
		s.pods = append(s.pods, pod{namespace: "shop", address: address, local: true})
		s.firewalls = []*networkv1.EgressNetworkPolicy{firewallOf("shop", "default", tt.rules...)}
		s.names = map[string][]netip.Addr{"www.foo.com": {netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}}
		if diff := cmp.Diff(tt.want, compile(s.of(ipfamily.IPv6)).firewallText(address.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestProjectWithEgressAddressSendsNoIPv6 verifies that the packets of a project with an egress
// address do not leave with another address.
func TestProjectWithEgressAddressSendsNoIPv6(t *testing.T) {
	s, address := shop(), netip.MustParseAddr("fd01::2")
	s.node = "one"
	s.pods = append(s.pods, pod{namespace: "shop", address: address, local: true})
	held := netip.MustParseAddr("192.0.2.201")
	s.exits = map[string]egressip.Exit{"shop": {Paths: [2]egressip.Path{{Address: held, Host: "one"}}, VNI: 12, Held: map[string][]netip.Addr{"one": {held}}}}
	sets := compile(s.of(ipfamily.IPv6)).sets
	if got, want := sortedKeys(sets[exitMarks].elements), []string{"fd01::2 : " + markText(egressip.MarkDrop)}; !slices.Equal(got, want) {
		t.Errorf("marks %q, want %q", got, want)
	}
	if got := len(sets[exitHeld].elements) + len(sets[exitAddresses].elements); got != 0 {
		t.Errorf("%d IPv4 addresses are in IPv6 sets", got)
	}
}
