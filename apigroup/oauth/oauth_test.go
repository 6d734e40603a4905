package oauth

import (
	"strings"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
)

// places are the fields that problems are about.
func places(problems field.ErrorList) string {
	var list []string
	for _, problem := range problems {
		list = append(list, problem.Field)
	}
	return strings.Join(list, " ")
}

func TestClientsAreValidated(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	tests := []struct {
		name   string
		client oauthv1.OAuthClient
		want   string
	}{
		{"a client", oauthv1.OAuthClient{RedirectURIs: []string{"https://a", "com.example:/x"}, GrantMethod: "prompt", AccessTokenMaxAgeSeconds: number(0), AccessTokenInactivityTimeoutSeconds: number(300)}, ""},
		{"addresses", oauthv1.OAuthClient{RedirectURIs: []string{"", "/a", "https://a/#x", "https://a/../b"}}, "redirectURIs[0] redirectURIs[1] redirectURIs[2] redirectURIs[3]"},
		{"a grant method", oauthv1.OAuthClient{GrantMethod: "ask"}, "grantMethod"},
		{"ages", oauthv1.OAuthClient{AccessTokenMaxAgeSeconds: number(-1), AccessTokenInactivityTimeoutSeconds: number(10)}, "accessTokenMaxAgeSeconds accessTokenInactivityTimeoutSeconds"},
		{"an empty secret", oauthv1.OAuthClient{AdditionalSecrets: []string{""}}, "additionalSecrets[0]"},
		{"restrictions", oauthv1.OAuthClient{ScopeRestrictions: []oauthv1.ScopeRestriction{{}, {ClusterRole: &oauthv1.ClusterRoleScopeRestriction{}}}},
			"scopeRestrictions[0] scopeRestrictions[1].clusterRole.roleNames scopeRestrictions[1].clusterRole.namespaces"},
	}
	for _, tt := range tests {
		if got := places(validateClient(t.Context(), &tt.client, nil)); got != tt.want {
			t.Errorf("%s: problems at %q, want %q", tt.name, got, tt.want)
		}
	}
}

// granted is a token as the server makes it.
func granted() *oauthv1.OAuthAccessToken {
	return &oauthv1.OAuthAccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: "sha256~" + strings.Repeat("A", 43)}, ClientName: "demo", UserName: "alice", UserUID: "1",
		Scopes: []string{"user:full"}, ExpiresIn: 86400,
	}
}

func TestTokensAreValidatedAndDoNotChange(t *testing.T) {
	if problems := validateToken(t.Context(), granted(), nil); len(problems) > 0 {
		t.Errorf("a token: %v", problems)
	}
	for name, change := range map[string]func(*oauthv1.OAuthAccessToken){
		"no user":          func(o *oauthv1.OAuthAccessToken) { o.UserName = "" },
		"no UID":           func(o *oauthv1.OAuthAccessToken) { o.UserUID = "" },
		"no client":        func(o *oauthv1.OAuthAccessToken) { o.ClientName = "" },
		"no scope":         func(o *oauthv1.OAuthAccessToken) { o.Scopes = nil },
		"no scope of ours": func(o *oauthv1.OAuthAccessToken) { o.Scopes = []string{"root"} },
		"a negative age":   func(o *oauthv1.OAuthAccessToken) { o.ExpiresIn = -1 },
	} {
		token := granted()
		change(token)
		if len(validateToken(t.Context(), token, nil)) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	more := granted()
	more.Scopes = []string{"user:full", "user:info"}
	if len(validateToken(t.Context(), more, granted())) == 0 {
		t.Error("the scopes of a token were changed")
	}
	later := granted()
	later.InactivityTimeoutSeconds, later.Labels = 600, map[string]string{"a": "b"}
	if problems := validateToken(t.Context(), later, granted()); len(problems) > 0 {
		t.Errorf("the end of an unused token: %v", problems)
	}
}

func TestNamesOfTokensAreHashesOrLong(t *testing.T) {
	for name, want := range map[string]bool{
		"sha256~" + strings.Repeat("A", 43): true, strings.Repeat("a", 32): true,
		"sha256~short": false, "sha256~" + strings.Repeat("!", 43): false, strings.Repeat("a", 31): false, "a/b" + strings.Repeat("a", 32): false,
	} {
		if got := len(tokenName(name, false)) == 0; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestUsersSeeTheirOwnHashedTokens(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice", UID: "1"}
	other, again, plain := granted(), granted(), granted()
	other.UserName, again.UserUID, plain.Name = "bob", "2", strings.Repeat("a", 40)
	if !mine(granted(), alice) || mine(other, alice) || mine(again, alice) || mine(plain, alice) {
		t.Error("the wrong tokens are shown")
	}
}

func TestEventsOfOthersAreNotShown(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice", UID: "1"}
	other, plain := granted(), granted()
	other.UserName, plain.Name = "bob", strings.Repeat("a", 40)
	for _, hidden := range []runtime.Object{other, plain, &oauthv1.OAuthClient{}} {
		if _, seen := shown(watch.Event{Type: watch.Added, Object: hidden}, alice); seen {
			t.Errorf("shown: %T", hidden)
		}
	}
	event, seen := shown(watch.Event{Type: watch.Added, Object: granted()}, alice)
	if _, own := event.Object.(*oauthv1.UserOAuthAccessToken); !seen || !own {
		t.Errorf("not shown: %T", event.Object)
	}
}
