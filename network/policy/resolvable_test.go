package policy

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// shopResolving returns a cluster whose project "shop" has a firewall that restricts names.
func shopResolving(rules ...string) snapshot {
	s := shop()
	firewall := firewallOf("shop", "default", rules...)
	firewall.Annotations = map[string]string{networkplugin.ResolveAnnotation: networkplugin.ResolveAllowed}
	s.firewalls = []*networkv1.EgressNetworkPolicy{firewall}
	return s
}

func TestPodsResolveOnlyAllowedNames(t *testing.T) {
	web, bank := netip.MustParseAddr("10.128.0.2"), netip.MustParseAddr("10.128.0.4")
	plain := shopResolving("Deny 0.0.0.0/0")
	plain.firewalls[0].Annotations = nil
	joined := shopResolving("Allow www.foo.com")
	joined.netIDs = map[string]uint32{"shop": 12, "bank": 12}
	global := shopResolving("Deny 0.0.0.0/0")
	global.netIDs = map[string]uint32{"shop": 0}
	rules := shopResolving("Allow www.foo.com", "Deny www.evil.com", "Allow *.Bar.org", "Allow 192.0.2.0/24", "Deny 0.0.0.0/0")
	exception := shopResolving("Deny www.foo.com", "Deny *.b.foo.com", "Allow *.foo.com", "Deny mail.foo.com", "Allow a.b.foo.com")
	for _, tt := range []struct {
		what   string
		state  snapshot
		client netip.Addr
		name   string
		want   bool
	}{
		{"allowed name", rules, web, "WWW.foo.com.", true},
		{"below a wildcard", rules, web, "a.b.bar.org.", true},
		{"domain of a wildcard", rules, web, "bar.org.", false},
		{"denied name", rules, web, "www.evil.com.", false},
		{"other name", rules, web, "c2VjcmV0.example.com.", false},
		{"reverse name", rules, web, "1.2.0.192.in-addr.arpa.", false},
		{"root", rules, web, ".", false},
		{"denied before a wildcard", exception, web, "www.foo.com.", false},
		{"denied wildcard before a wildcard", exception, web, "x.b.foo.com.", false},
		{"allowed by a wildcard", exception, web, "x.foo.com.", true},
		{"denied after a wildcard", exception, web, "mail.foo.com.", true},
		{"allowed after a denied wildcard", exception, web, "a.b.foo.com.", false},
		{"another project", rules, bank, "www.evil.com.", true},
		{"host", rules, netip.MustParseAddr("127.0.0.1"), "www.evil.com.", true},
		{"no names", shopResolving("Deny 0.0.0.0/0"), web, "www.foo.com.", false},
		{"without the annotation", plain, web, "www.foo.com.", true},
		{"joined project", joined, web, "www.foo.com.", false},
		{"global project", global, web, "www.foo.com.", true},
	} {
		r := NewResolvable(filepath.Join(t.TempDir(), "resolvable"))
		if err := r.set(tt.state.resolvable()); err != nil {
			t.Fatal(err)
		}
		if got := r.Allows(tt.client, tt.name); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.what, got, tt.want)
		}
	}
}

func TestRestrictionsOfNamesOutliveTheProcess(t *testing.T) {
	path, web := filepath.Join(t.TempDir(), "resolvable"), netip.MustParseAddr("10.128.0.2")
	check := func(when, name string, want bool) {
		t.Helper()
		if got := NewResolvable(path).Allows(web, name); got != want {
			t.Errorf("%s: %s: %t, want %t", when, name, got, want)
		}
	}
	check("at the first start", "www.evil.com.", true)
	r := NewResolvable(path)
	if err := r.set(shopResolving("Allow www.foo.com", "Deny 0.0.0.0/0").resolvable()); err != nil {
		t.Fatal(err)
	}
	check("after a restart", "www.evil.com.", false)
	check("after a restart", "www.foo.com.", true)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("with a damaged file", "www.foo.com.", false)
	r = NewResolvable(path)
	if err := r.set(shop().resolvable()); err != nil {
		t.Fatal(err)
	}
	check("without a firewall", "www.evil.com.", true)
}

// A missing directory simulates a full disk.
func TestPoliciesAreEnforcedWithoutAFileOfNames(t *testing.T) {
	f := newFixture(t)
	for _, pod := range [][2]string{{"shop", "web"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	dir, web := filepath.Join(t.TempDir(), "missing"), netip.MustParseAddr(f.address["web"])
	path := filepath.Join(dir, "resolvable")
	f.enforcer.Resolvable = NewResolvable(path)
	f.start()
	f.reaches("till>web web>till")
	_, err := f.network.NetworkV1().EgressNetworkPolicies("shop").Create(t.Context(), shopResolving("Allow www.foo.com").firewalls[0], metav1.CreateOptions{})
	f.must(err)
	f.policy("none", `{podSelector: {}, policyTypes: [Ingress]}`)
	f.reaches("web>till")
	if f.enforcer.Resolvable.Allows(web, "www.evil.com.") {
		t.Error("the pod resolves any name")
	}
	f.must(os.Mkdir(dir, 0o700))
	eventually.True(t, "file of names", func() bool { return !NewResolvable(path).Allows(web, "www.evil.com.") })
}
