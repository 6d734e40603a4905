package htpasswd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/conformance"
)

// users contains the output of Apache's htpasswd with the options -B, -m and -s. The password of
// each user is "secret".
const users = `# a comment
bcrypt:$2y$05$hW2uSmk/btOEUfNaPjsmOOwQL2tf3R8B4hje3ZVc7M0tNBlHudLxq
apr1:$apr1$mb0bpVDI$fDmOLawxCeMyAwPTOAwCT.
sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=
plain:secret
crypt:$6$abc$def

without a colon
bcrypt:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.htpasswd")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConformance(t *testing.T) {
	conformance.Password{
		Provider: New(write(t, users)), User: "bcrypt", Secret: "secret", Want: idp.Identity{UserName: "bcrypt"},
		Unreachable: Provider{File: filepath.Join(t.TempDir(), "missing")},
	}.Test(t)
}

func TestOlderHashesAreSupported(t *testing.T) {
	provider := New(write(t, users))
	for _, user := range []string{"apr1", "sha"} {
		if _, err := provider.AuthenticatePassword(t.Context(), user, "secret"); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if _, err := provider.AuthenticatePassword(t.Context(), user, "Secret"); !errors.Is(err, idp.ErrRefused) {
			t.Errorf("%s with a wrong password: %v", user, err)
		}
	}
}

func TestUnsupportedHashesAreRejected(t *testing.T) {
	provider := Provider{File: write(t, users)}
	for _, user := range []string{"plain", "crypt", "without a colon", "# a comment"} {
		if _, err := provider.AuthenticatePassword(t.Context(), user, "secret"); !errors.Is(err, idp.ErrRefused) {
			t.Errorf("%s: %v", user, err)
		}
	}
}

func TestChangesTakeEffectImmediately(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.htpasswd")
	provider := Provider{File: path}
	check := func(user, password string, want bool) {
		t.Helper()
		_, err := provider.AuthenticatePassword(t.Context(), user, password)
		if (err == nil) != want {
			t.Errorf("%s with %q: %v", user, password, err)
		}
	}
	if err := errors.Join(Set(path, "alice", "one"), Set(path, "bob", "b")); err != nil {
		t.Fatal(err)
	}
	check("alice", "one", true)
	if err := Set(path, "alice", "two"); err != nil {
		t.Fatal(err)
	}
	check("alice", "one", false)
	check("alice", "two", true)
	if err := Delete(path, "alice"); err != nil {
		t.Fatal(err)
	}
	check("alice", "two", false)
	check("bob", "b", true)
	if err := Delete(path, "alice"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("deleting twice: %v", err)
	}
	names, err := List(path)
	if diff := cmp.Diff([]string{"bob"}, names); diff != "" || err != nil {
		t.Errorf("users: %v (-want +got):\n%s", err, diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestInvalidUserNamesAreRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.htpasswd")
	for _, user := range []string{"", "a:b", "a/b", "a%b", "a\nb", " a", "#a", "~", strings.Repeat("a", 300)} {
		if err := Set(path, user, "secret"); err == nil {
			t.Errorf("user %q was set", user)
		}
	}
	if err := Set(path, "alice", ""); err == nil {
		t.Error("an empty password was set")
	}
	if names, err := List(path); len(names) > 0 || err != nil {
		t.Errorf("users %v, %v", names, err)
	}
}

func TestEachLoginComparesOneBcryptHash(t *testing.T) {
	for name, tt := range map[string]struct{ file, user, compared string }{
		"known":                         {"alice:$2y$05$one\nbob:$2y$05$two\n", "bob", "$2y$05$two"},
		"unknown":                       {"carol:$apr1$x$y\nalice:$2y$05$one\nbob:$2y$12$two\n", "eve", "$2y$05$one"},
		"unknown in an old file":        {"carol:$apr1$x$y\n", "eve", dummyHash},
		"unknown in an empty file":      {"", "eve", dummyHash},
		"with an old hash":              {"carol:$apr1$x$y\nalice:$2y$05$one\n", "carol", "$2y$05$one"},
		"with a hash in another format": {"dave:secret\n", "dave", dummyHash},
	} {
		var compared []string
		provider := Provider{File: write(t, tt.file), compare: func(hash, password []byte) error {
			compared = append(compared, string(hash)+" "+string(password))
			return bcrypt.ErrMismatchedHashAndPassword
		}}
		if _, err := provider.AuthenticatePassword(t.Context(), tt.user, "guess"); !errors.Is(err, idp.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{tt.compared + " guess"}, compared); diff != "" {
			t.Errorf("%s: compared (-want +got):\n%s", name, diff)
		}
	}
	if cost, err := bcrypt.Cost([]byte(dummyHash)); cost != bcrypt.DefaultCost || err != nil {
		t.Errorf("the dummy hash has cost %d, %v, want %d as for new passwords", cost, err, bcrypt.DefaultCost)
	}
}

func TestUnknownUserMatchesNoPassword(t *testing.T) {
	provider := Provider{File: write(t, users), compare: func(_, _ []byte) error { return nil }}
	if _, err := provider.AuthenticatePassword(t.Context(), "eve", "secret"); !errors.Is(err, idp.ErrRefused) {
		t.Errorf("the password of another user: %v", err)
	}
}
