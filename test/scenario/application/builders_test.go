package application

import (
	"context"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// languages contains the languages of the examples.
var languages = []string{"golang", "nodejs", "python"}

// publishBuilders builds the builder images for the examples, as an administrator does.
func publishBuilders(c *kit.Cluster) {
	for _, language := range languages {
		c.BuildSample(language, "")
	}
}

// repository is a Git repository that the cluster can clone.
type repository struct {
	t         *testing.T
	url, work string
}

// emptyRepository returns a repository without commits.
func emptyRepository(t *testing.T, c *kit.Cluster) *repository {
	t.Helper()
	root := t.TempDir()
	url := serve(t, c, &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	bare := filepath.Join(root, "examples.git")
	r := &repository{t: t, url: url + "/examples.git", work: filepath.Join(root, "work")}
	r.git("init", "-q", "--bare", "-b", "main", bare)
	r.git("-C", bare, "config", "http.receivepack", "true")
	r.git("init", "-q", "-b", "main", r.work)
	return r
}

// newRepository returns a repository that contains the examples.
func newRepository(t *testing.T, c *kit.Cluster) *repository {
	t.Helper()
	r := emptyRepository(t, c)
	for _, language := range languages {
		r.add(filepath.Join("examples", language), c.RepositoryFile("examples", language))
	}
	r.push("1")
	return r
}

// add copies a directory into the repository's work tree, under the given name.
func (r *repository) add(name, dir string) {
	r.t.Helper()
	if err := os.CopyFS(filepath.Join(r.work, name), os.DirFS(dir)); err != nil {
		r.t.Fatal(err)
	}
}

// push sets the version of all examples. It then commits and pushes them, and returns the commit's
// hash.
func (r *repository) push(version string) (commit string) {
	r.t.Helper()
	for _, language := range languages {
		write(r.t, filepath.Join(r.work, "examples", language, "VERSION"), version+"\n")
	}
	return r.commit("version " + version)
}

// commit commits and pushes the content of the work tree, and returns the commit's hash.
func (r *repository) commit(message string) (commit string) {
	r.t.Helper()
	r.git("-C", r.work, "add", "-A")
	r.git("-C", r.work, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", message)
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

// load repeatedly requests a page until stop is called. stop returns the failures.
func load(c *kit.Cluster, url string) (stop func() []error) {
	client, done := c.Visitor(), make(chan struct{})
	var failures []error
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := kit.Fetch(context.Background(), client, url, ""); err != nil {
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
