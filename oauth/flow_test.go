package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/token"
)

func TestAuthorizationCodeGrant(t *testing.T) {
	w := newFixture(t, nil)
	got := w.exchange(w.approved(demo()), nil)
	var reply map[string]any
	if err := json.Unmarshal([]byte(got.body), &reply); err != nil {
		t.Fatal(err)
	}
	secret, _ := reply["access_token"].(string)
	delete(reply, "access_token")
	want := map[string]any{"expires_in": 60.0, "scope": "user:info", "token_type": "Bearer"}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	name, ok := token.Name(secret)
	existing, err := w.tokens.Get(t.Context(), name)
	if !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if existing.UserName != "alice" || existing.UserUID == "" || existing.ClientName != "demo" || existing.ExpiresIn != 60 || existing.RedirectURI != app ||
		!token.IsHashed(existing.AuthorizeToken) || len(w.codes.All()) != 0 {
		t.Errorf("stored %+v; codes %v", existing, w.codes.All())
	}
	resp, ok, err := w.authenticator("dev").AuthenticateToken(t.Context(), secret)
	if err != nil || !ok || resp.User.GetName() != "alice" || !cmp.Equal(resp.User.GetGroups(), []string{"dev", "system:authenticated:oauth"}) {
		t.Errorf("the user of the token is %v, %v, %v", resp, ok, err)
	}
	// The second request requires no approval.
	browser := w.browser()
	if response := w.get(browser, w.logIn(browser, "alice", ask(demo())).at().String()); response.at().Query().Get("code") == "" {
		t.Errorf("the user must approve again: %s", response.at())
	}
}

func TestCodeIsValidOnceForItsClient(t *testing.T) {
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	tests := []struct {
		name   string
		pkce   bool
		change func(url.Values)
		want   string // the error, or "" for a token
	}{
		{"by its client", false, nil, ""},
		{"with a verifier", true, func(f url.Values) { f.Set("code_verifier", verifier) }, ""},
		{"without the verifier", true, nil, "invalid_grant"},
		{"with the challenge as verifier", true, func(f url.Values) { f.Set("code_verifier", challenge) }, "invalid_grant"},
		{"a wrong secret", false, func(f url.Values) { f.Set("client_secret", "wrong") }, "invalid_client"},
		{"no secret", false, func(f url.Values) { f.Del("client_secret") }, "invalid_grant"},
		{"an unknown client", false, func(f url.Values) { f.Set("client_id", "other") }, "invalid_client"},
		{"another client", false, func(f url.Values) { f.Set("client_id", "openshift-challenging-client"); f.Del("client_secret") }, "invalid_grant"},
		{"another address", false, func(f url.Values) { f.Set("redirect_uri", app+"/x") }, "invalid_grant"},
		{"another grant type", false, func(f url.Values) { f.Set("grant_type", "password") }, "unsupported_grant_type"},
		{"no grant type", false, func(f url.Values) { f.Del("grant_type") }, "invalid_request"},
		{"two codes", false, func(f url.Values) { f.Add("code", "x") }, "invalid_request"},
		{"the name of the object", false, func(f url.Values) { name, _ := token.Name(f.Get("code")); f.Set("code", name) }, "invalid_grant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, nil)
			values := demo()
			if tt.pkce {
				values.Set("code_challenge", challenge)
				values.Set("code_challenge_method", "S256")
			}
			code := w.approved(values)
			got := w.exchange(code, tt.change)
			var reply struct{ Error string }
			if err := json.Unmarshal([]byte(got.body), &reply); err != nil || reply.Error != tt.want || (got.StatusCode == http.StatusOK) != (tt.want == "") {
				t.Errorf("%s: %s", got.Status, got.body)
			}
			if tt.want == "" {
				if response := w.exchange(code, tt.change); !strings.Contains(response.body, "invalid_grant") {
					t.Errorf("second use of the code: %s", response.body)
				}
				if tokens := w.tokens.All(); len(tokens) != 0 {
					t.Errorf("after a second use of the code, the tokens are %v", tokens)
				}
			}
		})
	}
}

func TestConcurrentExchangesYieldOneToken(t *testing.T) {
	w := newFixture(t, nil)
	code := w.approved(demo())
	var group sync.WaitGroup
	var resp atomic.Int32
	for range 20 {
		group.Go(func() {
			if w.exchange(code, nil).StatusCode == http.StatusOK {
				resp.Add(1)
			}
		})
	}
	group.Wait()
	// If the code was used a second time after the token was stored, the token has been deleted.
	if resp.Load() != 1 || len(w.tokens.All()) > 1 {
		t.Errorf("%d exchanges returned a token, %d tokens are stored", resp.Load(), len(w.tokens.All()))
	}
}

func TestCodesAndTokensExpire(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.CodeMaxAge = 1 })
	code := w.approved(demo())
	for _, code := range w.codes.All() {
		code.CreationTimestamp = metav1.NewTime(code.CreationTimestamp.Add(-10 * time.Second))
		if _, err := w.codes.Update(t.Context(), code); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.exchange(code, nil); !strings.Contains(got.body, "invalid_grant") {
		t.Errorf("an old code: %s", got.body)
	}
	grant, err := w.issuer.Access(t.Context(), token.Grant{Client: must(t, w, "openshift-challenging-client"), UserName: "alice", UserUID: string(w.users.All()[0].UID), Scopes: []string{"user:full"}})
	if err != nil {
		t.Fatal(err)
	}
	authenticator := w.authenticator()
	age := func(seconds int, timeout int32) error {
		for _, token := range w.tokens.All() {
			token.CreationTimestamp = metav1.NewTime(token.CreationTimestamp.Add(-2 * time.Second))
			token.InactivityTimeoutSeconds = timeout
			token.ExpiresIn = int64(seconds)
			if _, err := w.tokens.Update(t.Context(), token); err != nil {
				return err
			}
		}
		_, _, err := authenticator.AuthenticateToken(t.Context(), grant.Secret)
		return err
	}
	if err := age(86400, 0); err != nil {
		t.Errorf("a young token: %v", err)
	}
	if err := age(0, 0); err != nil {
		t.Errorf("a token without expiration: %v", err)
	}
	if err := age(1, 0); !errors.Is(err, token.ErrExpired) {
		t.Errorf("an old token: %v", err)
	}
	if err := age(0, 1); !errors.Is(err, token.ErrInactive) {
		t.Errorf("an unused token: %v", err)
	}
	if err := w.users.Delete(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if err := age(0, 0); !errors.Is(err, token.ErrNoUser) {
		t.Errorf("a token without a user: %v", err)
	}
}
