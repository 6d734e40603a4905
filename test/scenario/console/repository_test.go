package console

import (
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
)

// repository serves a Git repository with the given files, on a different machine than the
// cluster's. It returns the repository's URL. If password is not empty, clients must log in as
// "ann" with the password.
func (s *site) repository(password string, files map[string]string) string {
	s.t.Helper()
	root := s.t.TempDir()
	dir := filepath.Join(root, "app")
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=x"},
	} {
		if output, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			s.t.Fatalf("git %q: %v\n%s", args, err, output)
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.Distant.String(), "0"))
	if err != nil {
		s.t.Fatal(err)
	}
	git := &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: s.t.Output(),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, entered, _ := r.BasicAuth(); password != "" && (user != "ann" || entered != password) {
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	s.t.Cleanup(server.Close)
	return server.URL + "/app/.git"
}
