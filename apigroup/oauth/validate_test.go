package oauth

import (
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apiserver"
)

func TestAuthorizationsAreValidated(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*oauthv1.OAuthClientAuthorization)
		want   string // the field that is rejected, or ""
	}{
		{"valid", func(*oauthv1.OAuthClientAuthorization) {}, ""},
		{"name of another user", func(a *oauthv1.OAuthClientAuthorization) { a.Name = "bob:console" }, "metadata.name"},
		{"no user ID", func(a *oauthv1.OAuthClientAuthorization) { a.UserUID = "" }, "userUID"},
		{"user with a path", func(a *oauthv1.OAuthClientAuthorization) { a.UserName, a.Name = "a/b", "a/b:console" }, "userName"},
		{"no scopes", func(a *oauthv1.OAuthClientAuthorization) { a.Scopes = nil }, "scopes"},
		{"unknown scope", func(a *oauthv1.OAuthClientAuthorization) { a.Scopes = []string{"user:full", "everything"} }, "scopes[1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &oauthv1.OAuthClientAuthorization{
				ObjectMeta: metav1.ObjectMeta{Name: "alice:console"}, ClientName: "console", UserName: "alice", UserUID: "1", Scopes: []string{"user:full"},
			}
			tt.change(a)
			if got := paths(validateAuthorization(t.Context(), a, nil)); got != tt.want {
				t.Errorf("got errors at %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNamesOfClientsHaveNoColon(t *testing.T) {
	for name, valid := range map[string]bool{"console": true, "system:serviceaccount:shop:robot": false, "a/b": false, "..": false} {
		if reasons := clientName(name, false); (len(reasons) == 0) != valid {
			t.Errorf("%q: got %q, want valid %v", name, reasons, valid)
		}
	}
}

func TestCodesAndTokensExpireInTheStore(t *testing.T) {
	store := &registry.Store{}
	expire(apiserver.Deps{}, store)
	for _, tt := range []struct {
		name     string
		object   runtime.Object
		existing uint64
		update   bool
		want     uint64
	}{
		{"token", &oauthv1.OAuthAccessToken{ExpiresIn: 86400}, 0, false, 86400},
		{"token that never expires", &oauthv1.OAuthAccessToken{}, 0, false, 0},
		{"code", &oauthv1.OAuthAuthorizeToken{ExpiresIn: 300}, 0, false, 300},
		{"an update does not extend the time", &oauthv1.OAuthAccessToken{ExpiresIn: 86400}, 17, true, 17},
		{"other object", &oauthv1.OAuthClient{}, 0, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := store.TTLFunc(tt.object, tt.existing, tt.update); err != nil || got != tt.want {
				t.Errorf("got %d, error %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestMaxAgeOfClientsInTables(t *testing.T) {
	for _, tt := range []struct {
		seconds *int32
		want    string
	}{{nil, "default"}, {ptr.To[int32](0), "unexpiring"}, {ptr.To[int32](3600), "1h0m0s"}} {
		if got := maxAge(tt.seconds); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
