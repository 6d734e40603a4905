package gitfiles

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// repositories is a directory of repositories that Git's own HTTP server serves.
type repositories struct {
	t    *testing.T
	root string
	url  string
	host string
}

func newRepositories(t *testing.T) *repositories {
	r := &repositories{t: t, root: t.TempDir()}
	environment := []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1"}
	server := httptest.NewServer(&cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: environment, Stderr: t.Output()})
	t.Cleanup(server.Close)
	r.url, r.host = server.URL, strings.TrimPrefix(server.URL, "http://")
	return r
}

// git runs Git in a repository, and returns its output.
func (r *repositories) git(name string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", append([]string{"-C", filepath.Join(r.root, name)}, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	output, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(string(output))
}

// commit creates or changes a repository, and returns the commit.
func (r *repositories) commit(name string, files map[string]string) string {
	r.t.Helper()
	dir := filepath.Join(r.root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	r.git(name, "init", "--quiet", "--initial-branch=main")
	for file, content := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git(name, "add", ".")
	r.git(name, "commit", "--quiet", "--message=x")
	return r.git(name, "rev-parse", "HEAD")
}

// list lists a directory in the app repository with the platform's dialer.
func (r *repositories) list(ref, dir string) ([]string, error) {
	dialer := outbound.New(outbound.Policy{AllowedHosts: []string{r.host}})
	return List(r.t.Context(), dialer.Transport(false), Place{URL: r.url + "/app/.git", Ref: ref, Dir: dir})
}

func TestFilesAreListedAtEveryPlaceOfRepository(t *testing.T) {
	r := newRepositories(t)
	first := r.commit("app", map[string]string{"go.mod": "module app", "deep/down/pom.xml": "<project/>"})
	r.git("app", "tag", "--annotate", "--message=x", "v1")
	r.git("app", "branch", "stable")
	r.commit("app", map[string]string{"Dockerfile": "FROM scratch", "deep/Gemfile": ""})
	for _, filters := range []string{"false", "true"} {
		r.git("app", "config", "uploadpack.allowFilter", filters)
		for _, tt := range []struct {
			ref, dir string
			want     []string
		}{
			{"", "", []string{"Dockerfile", "deep", "go.mod"}},
			{"", "/deep/", []string{"Gemfile", "down"}},
			{"main", "deep/down", []string{"pom.xml"}},
			{"stable", "", []string{"deep", "go.mod"}},
			{"refs/heads/stable", "deep", []string{"down"}},
			{"v1", "", []string{"deep", "go.mod"}},
			{first, "deep/../deep/down", []string{"pom.xml"}},
		} {
			got, err := r.list(tt.ref, tt.dir)
			if err != nil {
				t.Errorf("%+v: %v", tt, err)
				continue
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%+v with filters %s (-want +got):\n%s", tt, filters, diff)
			}
		}
	}
}

// If objects are packed, a tree with many entries is stored as a delta against another tree.
func TestTreesStoredAsDeltasAreListed(t *testing.T) {
	r := newRepositories(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("a/%03d", i)], files[fmt.Sprintf("b/%03d", i)] = fmt.Sprint(i), fmt.Sprint(i)
	}
	files["b/last"] = "x"
	r.commit("app", files)
	r.git("app", "repack", "-a", "-d", "-f", "--depth=50")
	tree := r.git("app", "rev-parse", "HEAD:a")
	if other := r.git("app", "rev-parse", "HEAD:b"); !strings.Contains(r.git("app", "verify-pack", "--verbose", packOf(t, r)), other+" tree") {
		t.Fatalf("the pack has neither %s nor %s", tree, other)
	}
	for dir, want := range map[string]int{"a": 300, "b": 301} {
		got, err := r.list("", dir)
		if err != nil || len(got) != want {
			t.Errorf("%s has %d files, %v; want %d", dir, len(got), err, want)
		}
	}
}

func packOf(t *testing.T, r *repositories) string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(r.root, "app/.git/objects/pack/*.idx"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %q: %v", packs, err)
	}
	return packs[0]
}

func TestMissingPlacesAreReported(t *testing.T) {
	r := newRepositories(t)
	r.commit("app", map[string]string{"go.mod": "module app"})
	for _, tt := range []struct{ ref, dir, want string }{
		{"none", "", `branch, tag or commit "none" does not exist`},
		{"", "none", `directory "none" does not exist`},
		{"", "go.mod", `directory "go.mod" does not exist`},
		{"ma in", "", "the name of the reference is not valid"},
		{"main\n0000", "", "the name of the reference is not valid"},
	} {
		if _, err := r.list(tt.ref, tt.dir); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if _, err := r.list(strings.Repeat("0", 39)+"1", ""); err == nil {
		t.Error("a commit that does not exist has files")
	}
}

func TestServersGetOnlyAllowedRequests(t *testing.T) {
	secret := "only for the platform"
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the rejected server received a request") }))
	t.Cleanup(inside.Close)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/redirected"):
			http.Redirect(w, r, inside.URL+r.URL.Path, http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/private"):
			http.Error(w, secret, http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/old"):
			fmt.Fprint(w, "001e# service=git-upload-pack\n0000"+secret)
		default:
			http.Error(w, secret, http.StatusTeapot)
		}
	}))
	t.Cleanup(outside.Close)
	dialer := outbound.New(outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(outside.URL, "http://")}})
	for address, want := range map[string]string{
		inside.URL:                   "is in a network that users must not reach",
		outside.URL + "/redirected":  "is in a network that users must not reach",
		outside.URL + "/private":     ErrPrivate.Error(),
		outside.URL + "/old":         "version 2",
		outside.URL:                  "the server responds with status 418",
		"file:///etc":                "use an address that begins with https://",
		"ssh://git@example.com/a":    "use an address that begins with https://",
		"https://a:b@example.com/a":  "must not contain a user or a password",
		"https://":                   "use an address that begins with https://",
		"http://nothing.invalid/app": "the server cannot be reached",
	} {
		_, err := List(t.Context(), dialer.Transport(false), Place{URL: address})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error contains the response: %v", address, err)
		}
	}
}

func TestLoginIsSentOnlyToServerOfRepository(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			t.Error("another server received the login")
		}
	}))
	t.Cleanup(other.Close)
	received := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		received = password == "opens3same"
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(server.Close)
	dialer := outbound.New(outbound.Policy{AllowedHosts: []string{strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(other.URL, "http://")}})
	_, err := List(t.Context(), dialer.Transport(false), Place{URL: server.URL + "/app", Login: url.UserPassword("ann", "opens3same")})
	if err == nil || !received {
		t.Errorf("the server of the repository received the login: %t; %v", received, err)
	}
}
