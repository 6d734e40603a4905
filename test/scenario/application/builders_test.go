package application

import (
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// languages are the languages of the examples.
var languages = []string{"golang", "nodejs", "python"}

// publishBuilders builds the builder images of the examples as an administrator does.
func publishBuilders(c *kit.Cluster) {
	for _, language := range languages {
		c.BuildSample(language, "")
	}
}

// repository is a Git repository with the examples. A server at an address of the host in the
// cluster's network serves it.
type repository struct {
	t         *testing.T
	url, work string
}

func newRepository(t *testing.T, c *kit.Cluster) *repository {
	t.Helper()
	root := t.TempDir()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	bare := filepath.Join(root, "examples.git")
	r := &repository{t: t, url: "http://" + listener.Addr().String() + "/examples.git", work: filepath.Join(root, "work")}
	r.git("init", "-q", "--bare", "-b", "main", bare)
	r.git("-C", bare, "config", "http.receivepack", "true")
	r.git("init", "-q", "-b", "main", r.work)
	for _, language := range languages {
		if err := os.CopyFS(filepath.Join(r.work, "examples", language), os.DirFS(c.RepositoryFile("examples", language))); err != nil {
			t.Fatal(err)
		}
	}
	r.push("1")
	return r
}

// push sets the version of all applications and pushes it.
func (r *repository) push(version string) (commit string) {
	r.t.Helper()
	for _, language := range languages {
		write(r.t, filepath.Join(r.work, "examples", language, "VERSION"), version+"\n")
	}
	r.git("-C", r.work, "add", "-A")
	r.git("-C", r.work, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "version "+version)
	r.git("-C", r.work, "push", "-q", r.url, "main")
	return r.git("-C", r.work, "rev-parse", "HEAD")
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	output, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// load requests a page repeatedly. The function that it returns ends the requests and returns the
// failures.
func load(c *kit.Cluster, url string) (stop func() []error) {
	client, done := visitor(c), make(chan struct{})
	var failures []error
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := get(client, url); err != nil {
				failures = append(failures, err)
			}
		}
	})
	return func() []error {
		close(done)
		wg.Wait()
		return failures
	}
}
