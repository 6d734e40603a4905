package oauth

import (
	"slices"
	"strings"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
)

// paths returns the field paths of errors, separated by spaces.
func paths(errs field.ErrorList) string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Field)
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
		if got := paths(validateClient(t.Context(), &tt.client, nil)); got != tt.want {
			t.Errorf("%s: problems at %q, want %q", tt.name, got, tt.want)
		}
	}
}

// token returns a token with the fields that the OAuth server sets.
func token() *oauthv1.OAuthAccessToken {
	return &oauthv1.OAuthAccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: "sha256~" + strings.Repeat("A", 43)}, ClientName: "demo", UserName: "alice", UserUID: "1",
		Scopes: []string{"user:full"}, ExpiresIn: 86400,
	}
}

func TestValidateTokenRejectsInvalidAndChangedTokens(t *testing.T) {
	if errs := validateToken(t.Context(), token(), nil); len(errs) > 0 {
		t.Errorf("a token: %v", errs)
	}
	for name, change := range map[string]func(*oauthv1.OAuthAccessToken){
		"no user":        func(o *oauthv1.OAuthAccessToken) { o.UserName = "" },
		"no UID":         func(o *oauthv1.OAuthAccessToken) { o.UserUID = "" },
		"no client":      func(o *oauthv1.OAuthAccessToken) { o.ClientName = "" },
		"unknown scope":  func(o *oauthv1.OAuthAccessToken) { o.Scopes = []string{"root"} },
		"a long address": func(o *oauthv1.OAuthAccessToken) { o.RedirectURI = "https://a/?" + strings.Repeat("x", 4096) },
		"long scopes":    func(o *oauthv1.OAuthAccessToken) { o.Scopes = slices.Repeat([]string{"role:view:shop"}, 300) },
		"a negative age": func(o *oauthv1.OAuthAccessToken) { o.ExpiresIn = -1 },
	} {
		token := token()
		change(token)
		if len(validateToken(t.Context(), token, nil)) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	unlimited := token()
	unlimited.Scopes = nil
	if errs := validateToken(t.Context(), unlimited, nil); len(errs) > 0 {
		t.Errorf("a token without scopes: %v", errs)
	}
	// The object in a request contains TypeMeta, whereas the stored object does not.
	typed := token()
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "oauth.openshift.io/v1", Kind: "OAuthAccessToken"}
	if errs := validateToken(t.Context(), typed, token()); len(errs) > 0 {
		t.Errorf("an update without a change: %v", errs)
	}
	code := &oauthv1.OAuthAuthorizeToken{ClientName: "demo", UserName: "alice", UserUID: "1", Scopes: []string{"user:full"}}
	typedCode := code.DeepCopy()
	typedCode.TypeMeta = metav1.TypeMeta{APIVersion: "oauth.openshift.io/v1", Kind: "OAuthAuthorizeToken"}
	if errs := validateCode(t.Context(), typedCode, code); len(errs) > 0 {
		t.Errorf("an update of a code without a change: %v", errs)
	}
	code.State = strings.Repeat("x", 4097)
	if len(validateCode(t.Context(), code, nil)) == 0 {
		t.Error("a code with a long state is accepted")
	}
	if errs := validateCode(t.Context(), code, code.DeepCopy()); len(errs) > 0 {
		t.Errorf("a code of an earlier version: %v", errs)
	}
	more := token()
	more.Scopes = []string{"user:full", "user:info"}
	if len(validateToken(t.Context(), more, token())) == 0 {
		t.Error("the scopes of a token were changed")
	}
	later := token()
	later.InactivityTimeoutSeconds, later.Labels = 600, map[string]string{"a": "b"}
	if errs := validateToken(t.Context(), later, token()); len(errs) > 0 {
		t.Errorf("deletion of an unused token: %v", errs)
	}
}

func TestTokenNamesAreHashesOrLong(t *testing.T) {
	for name, want := range map[string]bool{
		"sha256~" + strings.Repeat("A", 43): true, strings.Repeat("a", 32): true,
		"sha256~short": false, "sha256~" + strings.Repeat("!", 43): false, strings.Repeat("a", 31): false, "a/b" + strings.Repeat("a", 32): false,
	} {
		if got := len(tokenName(name, false)) == 0; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMineSelectsOwnHashedTokens(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice", UID: "1"}
	other, second, plain := token(), token(), token()
	other.UserName, second.UserUID, plain.Name = "bob", "2", strings.Repeat("a", 40)
	if !mine(token(), alice) || mine(other, alice) || mine(second, alice) || mine(plain, alice) {
		t.Error("the list contains the wrong tokens")
	}
}

func TestVisibleHidesEventsOfOthers(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice", UID: "1"}
	other, plain := token(), token()
	other.UserName, plain.Name = "bob", strings.Repeat("a", 40)
	for _, object := range []runtime.Object{other, plain, &oauthv1.OAuthClient{}} {
		if _, ok := visible(watch.Event{Type: watch.Added, Object: object}, alice); ok {
			t.Errorf("shown: %T", object)
		}
	}
	event, ok := visible(watch.Event{Type: watch.Added, Object: token()}, alice)
	if _, converted := event.Object.(*oauthv1.UserOAuthAccessToken); !ok || !converted {
		t.Errorf("not shown: %T", event.Object)
	}
}
