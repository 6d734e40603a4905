package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// rebuilds is the number of pushes for each language.
	rebuilds = 5
	// rebuildAim is the target for the time from a push until the page is served.
	rebuildAim = 5 * time.Second
)

// TestRebuild measures how long an application takes to serve a new page after a push of its
// source. Only the page changes, so a Source-to-Image build has nothing to download.
func TestRebuild(t *testing.T) {
	r := newTable("rebuilds")
	r.page = "benchmark.md"
	c := kit.Start(t, kit.Options{})
	source := &repository{t: t, root: t.TempDir()}
	source.create(c)
	for _, language := range []string{"nodejs", "golang"} {
		c.BuildSample(language, "")
		source.add(c, language)
		c.OC("new-app", language+"~"+source.url, "--context-dir="+language, "--name="+language)
		c.OC("patch", "bc/"+language, "-p", `{"spec": {"strategy": {"sourceStrategy": {"incremental": true}}}}`)
		c.OC("expose", "svc/"+language, "--hostname="+language+".example.com")
		waitVersion(c, language, "0")
		var pages []time.Duration
		stages := map[buildv1.StageName][]time.Duration{}
		for i := range rebuilds {
			version := fmt.Sprint(i + 1)
			start := time.Now()
			source.push(language, version)
			c.OC("start-build", language)
			waitVersion(c, language, version)
			pages = append(pages, time.Since(start))
			for stage, took := range stagesOf(t, c, fmt.Sprintf("%s-%d", language, i+2)) {
				stages[stage] = append(stages[stage], took)
			}
		}
		r.aim(fmt.Sprintf("%s: push to new page, median of %d", language, rebuilds), median(pages), rebuildAim)
		r.add("same, longest", "%s", seconds(percentile(pages, 100)))
		for _, stage := range []buildv1.StageName{buildv1.StageFetchInputs, buildv1.StageBuild, buildv1.StagePushImage} {
			r.add("stage "+string(stage)+" of the build, median", "%s", seconds(median(stages[stage])))
		}
	}
	r.write(t)
}

// repository is a Git repository that a cluster can clone.
type repository struct {
	t               *testing.T
	root, url, work string
}

// create creates an empty repository and serves it at the address of the cluster's host.
func (r *repository) create(c *kit.Cluster) {
	r.t.Helper()
	var listener net.Listener
	err := c.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(c.Address.String(), "0"))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1"},
	}}}
	server.Start()
	r.t.Cleanup(server.Close)
	r.url, r.work = server.URL+"/source.git", filepath.Join(r.root, "work")
	r.git("init", "-q", "--bare", "-b", "main", filepath.Join(r.root, "source.git"))
	r.git("init", "-q", "-b", "main", r.work)
}

// add adds an example with version 0 to the repository.
func (r *repository) add(c *kit.Cluster, language string) {
	r.t.Helper()
	if err := os.CopyFS(filepath.Join(r.work, language), os.DirFS(c.RepositoryFile("examples", language))); err != nil {
		r.t.Fatal(err)
	}
	r.push(language, "0")
}

// push changes the version that an example's page shows, and pushes the commit.
func (r *repository) push(language, version string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.work, language, "VERSION"), []byte(version+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.git("-C", r.work, "add", "-A")
	r.git("-C", r.work, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", language+" "+version)
	r.git("-C", r.work, "push", "-q", filepath.Join(r.root, "source.git"), "main")
}

func (r *repository) git(args ...string) {
	r.t.Helper()
	if output, err := exec.CommandContext(r.t.Context(), "git", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// waitVersion waits until an example's page shows a version.
func waitVersion(c *kit.Cluster, language, version string) {
	dialer := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, "tcp4", "127.0.0.1:80") }
	client := &http.Client{Transport: &http.Transport{DialContext: dialer, DisableKeepAlives: true}, Timeout: time.Minute}
	c.WaitFor("page of "+language+" with version "+version, func(context.Context) error {
		response, err := client.Get("http://" + language + ".example.com/")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(page), "<dt>Version<dd>"+version+"<") {
			err = fmt.Errorf("the response is %s: %.200s", response.Status, page)
		}
		return err
	})
}

// stagesOf returns the durations of a build's stages.
func stagesOf(t *testing.T, c *kit.Cluster, name string) map[buildv1.StageName]time.Duration {
	t.Helper()
	var build buildv1.Build
	if err := json.Unmarshal([]byte(c.OC("get", "build", name, "-o", "json")), &build); err != nil {
		t.Fatal(err)
	}
	took := map[buildv1.StageName]time.Duration{}
	for _, stage := range build.Status.Stages {
		took[stage.Name] += time.Duration(stage.DurationMilliseconds) * time.Millisecond
	}
	return took
}
