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
	w := newWorld(t, nil)
	got := w.exchange(w.approved(demo()), nil)
	var answer map[string]any
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		t.Fatal(err)
	}
	secret, _ := answer["access_token"].(string)
	delete(answer, "access_token")
	want := map[string]any{"expires_in": 60.0, "scope": "user:info", "token_type": "Bearer"}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	name, ok := token.Name(secret)
	stored, err := w.tokens.Get(t.Context(), name)
	if !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if stored.UserName != "alice" || stored.UserUID == "" || stored.ClientName != "demo" || stored.ExpiresIn != 60 || stored.RedirectURI != app ||
		!token.IsHashed(stored.AuthorizeToken) || len(w.codes.All()) != 0 {
		t.Errorf("stored %+v; codes %v", stored, w.codes.All())
	}
	who, ok, err := w.authenticator("dev").AuthenticateToken(t.Context(), secret)
	if err != nil || !ok || who.User.GetName() != "alice" || !cmp.Equal(who.User.GetGroups(), []string{"dev", "system:authenticated:oauth"}) {
		t.Errorf("the token is of %v, %v, %v", who, ok, err)
	}
	// The second time the user is not asked.
	browser := w.browser()
	if again := w.get(browser, w.logIn(browser, "alice", ask(demo())).at().String()); again.at().Query().Get("code") == "" {
		t.Errorf("the user is asked again: %s", again.at())
	}
}

func TestACodeIsGoodOnceForWhoAskedForIt(t *testing.T) {
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	tests := []struct {
		name   string
		pkce   bool
		change func(url.Values)
		want   string // error, empty for a token
	}{
		{"who asked", false, nil, ""},
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
			w := newWorld(t, nil)
			values := demo()
			if tt.pkce {
				values.Set("code_challenge", challenge)
				values.Set("code_challenge_method", "S256")
			}
			code := w.approved(values)
			got := w.exchange(code, tt.change)
			var answer struct{ Error string }
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil || answer.Error != tt.want || (got.StatusCode == http.StatusOK) != (tt.want == "") {
				t.Errorf("%s: %s", got.Status, got.body)
			}
			if tt.want == "" {
				if again := w.exchange(code, tt.change); !strings.Contains(again.body, "invalid_grant") {
					t.Errorf("the second time: %s", again.body)
				}
				if left := w.tokens.All(); len(left) != 0 {
					t.Errorf("a code that came again leaves the tokens %v", left)
				}
			}
		})
	}
}

func TestOfManyWhoExchangeACodeOneGetsAToken(t *testing.T) {
	w := newWorld(t, nil)
	code := w.approved(demo())
	var group sync.WaitGroup
	var given atomic.Int32
	for range 20 {
		group.Go(func() {
			if w.exchange(code, nil).StatusCode == http.StatusOK {
				given.Add(1)
			}
		})
	}
	group.Wait()
	// Who came after the token was stored ended it.
	if given.Load() != 1 || len(w.tokens.All()) > 1 {
		t.Errorf("%d got a token, %d are stored", given.Load(), len(w.tokens.All()))
	}
}

func TestCodesAndTokensEnd(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.CodeMaxAge = 1 })
	code := w.approved(demo())
	for _, stored := range w.codes.All() {
		stored.CreationTimestamp = metav1.NewTime(stored.CreationTimestamp.Add(-10 * time.Second))
		if _, err := w.codes.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.exchange(code, nil); !strings.Contains(got.body, "invalid_grant") {
		t.Errorf("an old code: %s", got.body)
	}
	issued, err := w.issuer.Access(t.Context(), token.Grant{Client: must(t, w, "openshift-challenging-client"), UserName: "alice", UserUID: string(w.users.All()[0].UID), Scopes: []string{"user:full"}})
	if err != nil {
		t.Fatal(err)
	}
	known := w.authenticator()
	age := func(seconds int, timeout int32) error {
		for _, stored := range w.tokens.All() {
			stored.CreationTimestamp = metav1.NewTime(stored.CreationTimestamp.Add(-2 * time.Second))
			stored.InactivityTimeoutSeconds = timeout
			stored.ExpiresIn = int64(seconds)
			if _, err := w.tokens.Update(t.Context(), stored); err != nil {
				return err
			}
		}
		_, _, err := known.AuthenticateToken(t.Context(), issued.Secret)
		return err
	}
	if err := age(86400, 0); err != nil {
		t.Errorf("a young token: %v", err)
	}
	if err := age(0, 0); err != nil {
		t.Errorf("a token without an end: %v", err)
	}
	if err := age(1, 0); !errors.Is(err, token.ErrExpired) {
		t.Errorf("an old token: %v", err)
	}
	if err := age(0, 1); !errors.Is(err, token.ErrInactive) {
		t.Errorf("a token that nobody used: %v", err)
	}
	if err := w.users.Delete(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if err := age(0, 0); !errors.Is(err, token.ErrNoUser) {
		t.Errorf("a token of nobody: %v", err)
	}
}
