package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// server is a Git server that serves the app repository.
type server struct {
	*httptest.Server
	t    *testing.T
	root string
	// password, if set, is the password that clients must send.
	password string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, root: t.TempDir()}
	backend := &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: t.Output()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != s.password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// git runs git in a repository and returns its output.
func (s *server) git(repository string, args ...string) string {
	s.t.Helper()
	command := exec.Command("git", append([]string{"-C", filepath.Join(s.root, repository)}, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com")
	output, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// commit creates the repository if it does not exist, and commits files to it.
func (s *server) commit(repository, message string, files map[string]string) (hash string) {
	s.t.Helper()
	dir := filepath.Join(s.root, repository)
	if _, err := os.Stat(dir); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.git(repository, "init", "-q", "-b", "main")
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git(repository, "add", "-A")
	s.git(repository, "commit", "-q", "-m", message)
	return s.git(repository, "rev-parse", "HEAD")
}

// clone returns a Git that clones the app repository.
func (s *server) clone(ref string) *Git {
	return &Git{URL: s.URL + "/app/.git", Ref: ref, Limit: NewLimit(), Out: s.t.Output(), Forbidden: func(netip.Addr) bool { return false }}
}

// content returns the content of a file, or the error from reading it.
func content(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestCloneChecksOutEachKindOfReference(t *testing.T) {
	s := newServer(t)
	first := s.commit("app", "first", map[string]string{"file": "first"})
	s.git("app", "tag", "-a", "-m", "release", "v1")
	s.git("app", "checkout", "-q", "-b", "topic/x")
	topic := s.commit("app", "topic\n\nwith a body", map[string]string{"file": "topic"})
	s.git("app", "update-ref", "refs/pull/7/head", topic)
	s.git("app", "checkout", "-q", "main")
	last := s.commit("app", "last", map[string]string{"file": "last"})
	for ref, want := range map[string]struct{ hash, content string }{
		"": {last, "last"}, "main": {last, "last"}, "topic/x": {topic, "topic"}, "v1": {first, "first"},
		"refs/pull/7/head": {topic, "topic"}, first: {first, "first"},
	} {
		dir := t.TempDir()
		commit, err := s.clone(ref).Clone(t.Context(), dir)
		if err != nil {
			t.Errorf("%q: %v", ref, err)
			continue
		}
		if commit.Hash.String() != want.hash || content(dir, "file") != want.content || commit.Author.Name != "A" || commit.Committer.Email != "c@example.com" {
			t.Errorf("%q is commit %s with %q, want %v", ref, commit.Hash, content(dir, "file"), want)
		}
	}
	for _, ref := range []string{"none", strings.Repeat("0", 40)} {
		if _, err := s.clone(ref).Clone(t.Context(), t.TempDir()); err == nil {
			t.Errorf("cloned %q, although it does not exist", ref)
		}
	}
}

func TestCloneSendsPasswordOnlyToItsServer(t *testing.T) {
	s := newServer(t)
	s.commit("app", "first", map[string]string{"file": "first"})
	s.password = "secret-word"
	_, err := s.clone("").Clone(t.Context(), t.TempDir())
	if err == nil {
		t.Error("cloned without a password")
	}
	g := s.clone("")
	g.Secret = Secret{Password: "secret-word"}
	dir := t.TempDir()
	if _, err := g.Clone(t.Context(), dir); err != nil || content(dir, "file") != "first" {
		t.Error(err)
	}
	g = s.clone("")
	g.URL = strings.Replace(g.URL, "//", "//user:secret-word@", 1)
	dir = t.TempDir()
	if _, err := g.Clone(t.Context(), dir); err != nil || content(dir, "file") != "first" {
		t.Errorf("with the password in the URL: %v", err)
	}
	if config := content(dir, ".git/config"); strings.Contains(config, "secret-word") || !strings.Contains(config, s.URL) {
		t.Errorf("the clone stores the password: %s", config)
	}
	g.URL += "/missing"
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || strings.Contains(err.Error(), "secret-word") {
		t.Errorf("the error contains the password: %v", err)
	}
	if url := Anonymous("https://token@example.com/app.git"); url != "https://example.com/app.git" {
		t.Errorf("a log shows %s", url)
	}
	if auth, err := g.auth("http://other.example.com/x.git"); auth != nil || err != nil {
		t.Errorf("another server gets %v, %v", auth, err)
	}
}

func TestMirrorHasAllRevisionsAndNoPassword(t *testing.T) {
	s := newServer(t)
	first := s.commit("app", "first", map[string]string{"file": "first"})
	s.git("app", "tag", "v1")
	s.commit("app", "second", map[string]string{"file": "second"})
	s.git("app", "branch", "other", first)
	s.password = "secret-word"
	g, dir := s.clone(""), t.TempDir()
	if err := g.Mirror(t.Context(), t.TempDir()); err == nil {
		t.Error("mirrored without a password")
	}
	g.Secret = Secret{Password: "secret-word"}
	if err := g.Mirror(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[string]string{"HEAD": "second", "main": "second", "other": "first", "v1": "first", first: "first"} {
		into := t.TempDir()
		for _, arguments := range [][]string{{"init", "-q"}, {"fetch", "-q", "--depth", "1", "--", dir, revision}, {"checkout", "-q", "FETCH_HEAD"}} {
			if output, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", into}, arguments...)...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", arguments, err, output)
			}
		}
		if got := content(into, "file"); got != want {
			t.Errorf("revision %s has %q, want %q", revision, got, want)
		}
	}
	if config := content(dir, "config"); strings.Contains(config, "secret-word") || !strings.Contains(config, s.URL) {
		t.Errorf("the mirror stores the password: %s", config)
	}
	for other, want := range map[string]bool{
		"https://git.example.com/b.git": true, "https://ann:p@git.example.com/b.git": true, "http://git.example.com/b.git": false,
		"https://git.example.com:8443/b.git": false, "https://git.example.com.evil.example/b.git": false, "ssh://git@git.example.com/b.git": false,
	} {
		if SameServer("https://git.example.com/app.git", other) != want {
			t.Errorf("%s is on the server of the source: %v", other, !want)
		}
	}
}

func TestCloneFetchesSubmodules(t *testing.T) {
	s := newServer(t)
	s.commit("inner", "inner", map[string]string{"deep": "deep"})
	s.commit("sub", "sub", map[string]string{"file": "sub"})
	s.git("sub", "submodule", "--quiet", "add", s.URL+"/inner/.git", "inner")
	s.commit("sub", "with inner", nil)
	s.commit("app", "first", map[string]string{"file": "app"})
	s.git("app", "submodule", "--quiet", "add", s.URL+"/sub/.git", "sub")
	s.commit("app", "with sub", nil)
	dir := t.TempDir()
	if _, err := s.clone("").Clone(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if content(dir, "sub/file") != "sub" || content(dir, "sub/inner/deep") != "deep" {
		t.Errorf("the submodules have %q and %q", content(dir, "sub/file"), content(dir, "sub/inner/deep"))
	}
}

func TestCloneRejectsRepositoryOnOwnMachine(t *testing.T) {
	s := newServer(t)
	s.commit("app", "first", map[string]string{"file": "first"})
	g := s.clone("")
	g.Forbidden = LocalAddress
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "127.0.0.1, an address of the build's own machine") {
		t.Errorf("the loopback address: %v", err)
	}
	redirecting := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/info/refs?service=git-upload-pack", http.StatusFound))
	t.Cleanup(redirecting.Close)
	g.URL = redirecting.URL + "/app/.git"
	g.Forbidden = func(ip netip.Addr) bool { return LocalAddress(ip) && !ip.IsLoopback() }
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "169.254.169.254, an address of the build's own machine") {
		t.Errorf("a redirection to the metadata address: %v", err)
	}
	for _, url := range []string{"ssh://git@127.0.0.1/app", "git://localhost/app"} {
		g = s.clone("")
		g.URL, g.Forbidden, g.Secret.Key = url, LocalAddress, []byte("")
		if _, err := g.Clone(t.Context(), t.TempDir()); err == nil {
			t.Errorf("cloned %s", url)
		}
	}
	g.URL = "file://" + s.root + "/app"
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "unsupported scheme") {
		t.Errorf("a file URL: %v", err)
	}
}

func TestCloneStopsAtLimit(t *testing.T) {
	s := newServer(t)
	s.commit("app", "first", map[string]string{"zeros": strings.Repeat("\x00", 1<<20)})
	g := s.clone("")
	g.Limit = &Limit{Bytes: 1 << 19, Files: 1000}
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "larger than 512KiB") {
		t.Errorf("too many bytes: %v", err)
	}
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	s.commit("app", "many", files)
	g = s.clone("")
	g.Limit = &Limit{Bytes: 1 << 30, Files: 50}
	if _, err := g.Clone(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "more than 50 files") {
		t.Errorf("too many files: %v", err)
	}
}

func TestCloneStopsAtMemoryLimit(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		line := func(text string) error {
			_, err := fmt.Fprintf(w, "%04x%s", len(text)+4, text)
			return err
		}
		err := line("# service=git-upload-pack\n")
		if _, err := io.WriteString(w, "0000"); err != nil {
			return
		}
		for i := 0; err == nil && r.Context().Err() == nil; i++ {
			end := "\n"
			if i == 0 {
				end = "\x00ofs-delta\n"
			}
			err = line(fmt.Sprintf("%040x refs/heads/%0200d%s", i+1, i, end))
		}
	}))
	t.Cleanup(endless.Close)
	g := newServer(t).clone("")
	g.URL, g.Limit = endless.URL+"/app/.git", &Limit{Bytes: 1 << 30, Files: 1000, Memory: heapBytes() + 64<<20}
	if _, err := g.Clone(t.Context(), t.TempDir()); !errors.Is(err, errTooLarge) {
		t.Errorf("a server with endless references: %v", err)
	}
}
