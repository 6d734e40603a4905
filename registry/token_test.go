package registry

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/auth/token"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-platform/slipway/internal/certtest"
)

// tokenServer issues tokens to users whose password is `secret`. A token contains the user's
// permissions.
//
// Source: distribution's "Docker Registry v2 authentication via central service".
type tokenServer struct {
	t      *testing.T
	signer jose.Signer
	rights map[string]map[string][]string // actions by user and repository
}

func newTokenServer(t *testing.T, authority *certtest.Authority) *tokenServer {
	t.Helper()
	pair := authority.Issue(t, "tokens")
	cert, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("x5c", [][]byte{cert.Certificate[0]})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: cert.PrivateKey}, options)
	if err != nil {
		t.Fatal(err)
	}
	return &tokenServer{t: t, signer: signer, rights: map[string]map[string][]string{
		"ann": {"team/app": {"pull", "push"}, "team/other": {"pull", "push"}}, "bob": {"team/app": {"pull"}},
	}}
}

// issue creates a token for a user with scopes such as "repository:team/app:pull,push".
func (s *tokenServer) issue(user string, scopes []string, expires time.Time) string {
	s.t.Helper()
	claims := token.ClaimSet{
		Issuer: "the test", Subject: user, Audience: token.AudienceList{"registry"}, Expiration: expires.Unix(), NotBefore: time.Now().Add(-time.Minute).Unix(),
	}
	for _, scope := range scopes {
		parts := strings.Split(scope, ":")
		if len(parts) != 3 || parts[0] != "repository" {
			continue
		}
		desired := strings.Split(parts[2], ",")
		granted := slices.DeleteFunc(slices.Clone(s.rights[user][parts[1]]), func(action string) bool { return !slices.Contains(desired, action) })
		claims.Access = append(claims.Access, &token.ResourceActions{Type: parts[0], Name: parts[1], Actions: granted})
	}
	token, err := jwt.Signed(s.signer).Claims(claims).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// ServeHTTP serves GET requests. Clients with a password use this method.
func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, ok := r.BasicAuth()
	switch {
	case r.Method != http.MethodGet:
		http.NotFound(w, r)
	case ok && password != "secret":
		w.WriteHeader(http.StatusUnauthorized)
	default:
		var scopes []string
		for _, scope := range r.URL.Query()["scope"] {
			scopes = append(scopes, strings.Fields(scope)...)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token": s.issue(user, scopes, time.Now().Add(time.Minute)), "expires_in": 60})
	}
}

func TestUserHasPermissionsInToken(t *testing.T) {
	authority := certtest.New(t)
	tokens := newTokenServer(t, authority)
	server := httptest.NewServer(tokens)
	t.Cleanup(server.Close)
	settings, err := configured(t, fmt.Sprintf(`
version: 0.1
storage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}}
auth: {token: {realm: %s/token, service: registry, issuer: the test, rootcertbundle: %s}}
`, t.TempDir(), strings.Replace(server.URL, "127.0.0.1", "localhost", 1), authority.File))
	if err != nil {
		t.Fatal(err)
	}
	g := testRegistryWith(t, settings)
	as := func(user string) remote.Option {
		return remote.WithAuth(&authn.Basic{Username: user, Password: "secret"})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(g.image(g.layer()), types.OCIManifestSchema1), types.OCIConfigJSON)
	if err := remote.Write(g.tag("team/app"), image, as("ann")); err != nil {
		t.Fatal(err)
	}
	id := digestOf(t, image)
	if _, err := remote.Image(g.digest("team/app", id), as("bob")); err != nil {
		t.Errorf("a user who can pull: %v", err)
	}
	if _, err := remote.Referrers(g.digest("team/app", id), as("bob")); err != nil {
		t.Errorf("referrers of an image: %v", err)
	}
	for name, try := range map[string]func() error{
		"a push by a user who may only pull":      func() error { return remote.Write(g.tag("team/app"), g.image(g.layer()), as("bob")) },
		"a push to a repository of another user":  func() error { return remote.Write(g.tag("theirs/app"), image, as("ann")) },
		"a pull of a repository of another user":  func() error { _, err := remote.Image(g.digest("team/other", id), as("bob")); return err },
		"a pull without credentials":              func() error { _, err := remote.Image(g.digest("team/app", id)); return err },
		"a list of referrers without credentials": func() error { _, err := remote.Referrers(g.digest("team/app", id)); return err },
		"a wrong password": func() error {
			_, err := remote.Image(g.digest("team/app", id), remote.WithAuth(&authn.Basic{Username: "ann", Password: "wrong"}))
			return err
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s works", name)
		}
	}
	path, all := "/v2/team/app/manifests/"+id, []string{"repository:team/app:pull"}
	forger := newTokenServer(t, certtest.New(t))
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"a valid token":         {tokens.issue("bob", all, time.Now().Add(time.Minute)), http.StatusOK},
		"an expired token":      {tokens.issue("bob", all, time.Now().Add(-time.Hour)), http.StatusUnauthorized},
		"token of another user": {forger.issue("bob", all, time.Now().Add(time.Minute)), http.StatusUnauthorized},
	} {
		if got := g.send(http.MethodGet, path, http.Header{"Authorization": {"Bearer " + tt.token}, "Accept": {string(types.OCIManifestSchema1)}}, nil); got.StatusCode != tt.want {
			t.Errorf("%s: %s, want %d", name, got.Status, tt.want)
		}
	}
	g.copyBySkopeo("team/app:latest", "team/other:v1")
}

// copyBySkopeo logs skopeo in as ann and copies an image to another repository.
func (g *testRegistry) copyBySkopeo(from, to string) {
	g.t.Helper()
	credentials := filepath.Join(g.t.TempDir(), "auth.json")
	for _, args := range [][]string{
		{"login", "--tls-verify=false", "--authfile", credentials, "-u", "ann", "-p", "secret", g.host},
		{"--insecure-policy", "copy", "--authfile", credentials, "--src-tls-verify=false", "--dest-tls-verify=false", "docker://" + g.host + "/" + from, "docker://" + g.host + "/" + to},
	} {
		if output, err := exec.CommandContext(g.t.Context(), "skopeo", args...).CombinedOutput(); err != nil {
			g.t.Errorf("skopeo %s: %v\n%s", args, err, output)
		}
	}
}
