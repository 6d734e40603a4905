package claim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// route parses "namespace/name host/path". A wildcard host begins with "*.". A path that ends with
// "=" is an exact path, which does not match the paths below it.
func route(age int, text string) *routev1.Route {
	user, location, _ := strings.Cut(text, " ")
	result := &routev1.Route{}
	result.Namespace, result.Name, _ = strings.Cut(user, "/")
	result.CreationTimestamp = metav1.NewTime(time.Unix(int64(age), 0))
	result.UID = types.UID(user)
	if i := strings.Index(location, "/"); i >= 0 {
		location, result.Spec.Path = location[:i], location[i:]
	}
	if path, exact := strings.CutSuffix(result.Spec.Path, "="); exact {
		result.Spec.Path, result.Annotations = path, map[string]string{PathType: "Exact"}
	}
	if strings.HasPrefix(location, "*.") {
		location, result.Spec.WildcardPolicy = "any"+location[1:], routev1.WildcardPolicySubdomain
	}
	result.Spec.Host = location
	return result
}

// judged formats the decisions for routes that were created one after another, including rejection
// reasons.
func judged(policy Policy, texts ...string) string {
	var routes []*routev1.Route
	for age, text := range texts {
		routes = append(routes, route(age, text))
	}
	rand.Shuffle(len(routes), func(i, j int) { routes[i], routes[j] = routes[j], routes[i] })
	var lines []string
	for _, verdict := range Judge(routes, policy) {
		text := verdict.Route.Name
		if !verdict.Admitted() {
			text += ":" + verdict.Reason
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, " ")
}

func TestOldestClaimApplies(t *testing.T) {
	open := Policy{Wildcards: true, AnyNamespace: true}
	for name, tt := range map[string]struct {
		policy Policy
		routes []string
		want   string
	}{
		"different hosts":                          {Policy{}, []string{"a/1 x.com", "b/2 y.com"}, "1 2"},
		"same host in one namespace":               {Policy{}, []string{"a/1 x.com", "a/2 x.com"}, "1 2:HostAlreadyClaimed"},
		"other paths of the namespace":             {Policy{}, []string{"a/1 x.com", "a/2 x.com/test", "a/3 x.com/test/"}, "1 2 3"},
		"an exact path, and paths below it":        {Policy{}, []string{"a/1 x.com/test", "a/2 x.com/test=", "a/3 x.com/test="}, "1 2 3:HostAlreadyClaimed"},
		"no path, and the root path":               {Policy{}, []string{"a/1 x.com", "a/2 x.com/"}, "1 2:HostAlreadyClaimed"},
		"other path, other namespace":              {Policy{}, []string{"a/1 x.com", "b/2 x.com/test"}, "1 2:HostAlreadyClaimed"},
		"ownership off: other path":                {open, []string{"a/1 x.com", "b/2 x.com/test"}, "1 2"},
		"ownership off: same path":                 {open, []string{"a/1 x.com", "b/2 x.com/t", "a/3 x.com/t"}, "1 2 3:HostAlreadyClaimed"},
		"ownership off: an exact path":             {open, []string{"a/1 x.com/t", "b/2 x.com/t=", "a/3 x.com/t="}, "1 2:HostAlreadyClaimed 3"},
		"ownership off: below an exact path":       {open, []string{"a/1 x.com/=", "b/2 x.com/", "b/3 x.com/t"}, "1 2:HostAlreadyClaimed 3"},
		"rejected routes claim nothing":            {Policy{}, []string{"a/1 x.com", "b/2 x.com/p", "a/3 x.com/p"}, "1 2:HostAlreadyClaimed 3"},
		"wildcards disabled":                       {Policy{}, []string{"a/1 *.x.com"}, "1:RouteNotAdmitted"},
		"wildcard and hosts of the same namespace": {Policy{Wildcards: true}, []string{"a/1 www.x.com", "a/2 *.x.com", "a/3 ftp.x.com"}, "1 2 3"},
		"wildcard owns hosts of its domain":        {Policy{Wildcards: true}, []string{"a/1 *.x.com", "b/2 www.x.com", "b/3 x.com"}, "1 2:HostAlreadyClaimed 3"},
		"host owns its domain for wildcards":       {Policy{Wildcards: true}, []string{"a/1 www.abc.xyz", "b/2 *.abc.xyz", "b/3 z.abc.xyz"}, "1 2:HostAlreadyClaimed 3"},
		"ownership off: wildcard":                  {open, []string{"a/1 www.x.com", "b/2 *.x.com", "c/3 foo.x.com", "d/4 *.x.com"}, "1 2 3 4:HostAlreadyClaimed"},
		"second wildcard":                          {Policy{Wildcards: true}, []string{"a/1 *.x.com", "a/2 *.x.com"}, "1 2:HostAlreadyClaimed"},
		"wildcard without domain":                  {Policy{Wildcards: true}, []string{"a/1 localhost*", "a/2 *.x"}, "1:InvalidHost 2"},
		"no host":                                  {Policy{}, []string{"a/1 "}, "1:NoHostValue"},
		"invalid host":                             {Policy{}, []string{"a/1 www_x.com", "a/2 -x.com"}, "1:InvalidHost 2:InvalidHost"},
		"invalid path":                             {Policy{}, []string{"a/1 x.com/a b", "a/2 x.com/a\nb", "a/3 x.com/a?b", "a/4 x.com/%20"}, "1:InvalidPath 2:InvalidPath 3:InvalidPath 4"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judged(tt.policy, tt.routes...); got != tt.want {
				t.Errorf("verdicts are %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAllowedAndDeniedDomains(t *testing.T) {
	deny := []string{"open.header.test", "openshift.org", "block.it"}
	allow := []string{"stickshift.org", "kates.net"}
	both := Policy{Allowed: []string{"openshift.org", "kates.net"}, Denied: []string{"ops.openshift.org", "metrics.kates.net"}}
	for _, tt := range []struct {
		policy Policy
		host   string
		want   bool
	}{
		{Policy{Denied: deny}, "foo.header.test", true}, {Policy{Denied: deny}, "www.allow.it", true}, {Policy{Denied: deny}, "www.openshift.test", true},
		{Policy{Denied: deny}, "open.header.test", false}, {Policy{Denied: deny}, "www.open.header.test", false}, {Policy{Denied: deny}, "block.it", false},
		{Policy{Denied: deny}, "franco.baresi.block.it", false}, {Policy{Denied: deny}, "api.openshift.org", false}, {Policy{Denied: deny}, "notopenshift.org", true},
		{Policy{Allowed: allow}, "stickshift.org", true}, {Policy{Allowed: allow}, "erno.r.kube.kates.net", true}, {Policy{Allowed: allow}, "www.deny.it", false},
		{both, "openshift.org", true}, {both, "m.api.openshift.org", true}, {both, "api.kates.net", true},
		{both, "log.ops.openshift.org", false}, {both, "int.metrics.kates.net", false}, {both, "www.block.it", false},
	} {
		if got := Judge([]*routev1.Route{route(0, "a/r "+tt.host)}, tt.policy)[0].Admitted(); got != tt.want {
			t.Errorf("%s with %+v: admitted %t, want %t", tt.host, tt.policy, got, tt.want)
		}
	}
}

// For random routes, two routes never serve the same host and path, and no host belongs to two
// namespaces. The decisions do not depend on the order of the list.
func TestClaimsAreUnique(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		policy := Policy{Wildcards: random.IntN(2) == 0}
		var texts []string
		for i := range 30 {
			host := fmt.Sprintf("%s.%c.com", []string{"www", "ftp", "*"}[random.IntN(3)], 'a'+rune(random.IntN(3)))
			texts = append(texts, fmt.Sprintf("ns%d/r%d %s%s", random.IntN(3), i, host, []string{"", "/", "/x", "/x/y"}[random.IntN(4)]))
		}
		if first, second := judged(policy, texts...), judged(policy, texts...); first != second {
			t.Fatalf("the order of the list changes the verdicts: %q and %q", first, second)
		}
		exact, owner := map[string]bool{}, map[string]string{}
		var routes []*routev1.Route
		for age, text := range texts {
			routes = append(routes, route(age, text))
		}
		for _, verdict := range Judge(routes, policy) {
			if !verdict.Admitted() {
				continue
			}
			r := verdict.Route
			key := hostOf(r) + path(r)
			if exact[key] {
				t.Fatalf("%s has two routes among %q", key, texts)
			}
			exact[key] = true
			if before := owner[hostOf(r)]; before != "" && before != r.Namespace {
				t.Fatalf("%s belongs to %s and to %s among %q", hostOf(r), before, r.Namespace, texts)
			}
			owner[hostOf(r)] = r.Namespace
		}
		for name, namespace := range owner {
			if wild := owner["*."+Domain(name)]; wild != "" && wild != namespace {
				t.Fatalf("%s belongs to %s, its wildcard to %s", name, namespace, wild)
			}
		}
	}
}

func TestHostProblemsMatchDNS1123(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		var host strings.Builder
		for range random.IntN(7) {
			host.WriteByte("ab0-..A_ "[random.IntN(9)])
		}
		if got, want := len(hostProblems(host.String())) == 0, len(validation.IsDNS1123Subdomain(host.String())) == 0; got != want {
			t.Errorf("host %q is valid: %t, want %t", host.String(), got, want)
		}
	}
	if len(hostProblems(strings.Repeat("a", validation.DNS1123SubdomainMaxLength+1))) == 0 {
		t.Error("a host that is too long is valid")
	}
}
