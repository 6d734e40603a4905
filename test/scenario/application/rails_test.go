package application

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// gemMirror serves the gems of Rails that make setup installs, as a mirror of RubyGems does.
func gemMirror(t *testing.T, c *kit.Cluster) (address string) {
	t.Helper()
	dir := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), "ruby", filepath.Join("testdata", "gems.rb"), dir, "rails", "pg", "puma").CombinedOutput(); err != nil {
		t.Fatalf("build gems: %v\n%s", err, output)
	}
	return serve(t, c, http.FileServer(http.Dir(dir)))
}

func TestBuilderServesRails(t *testing.T) {
	for _, image := range selected([]string{"ruby"}, nil) {
		t.Run(image, serveRails)
	}
}

// serveRails builds and serves an application that keeps its articles in PostgreSQL.
func serveRails(t *testing.T) {
	c := kit.Shared(t)
	for _, name := range []string{"ruby", "postgresql"} {
		c.BuildSample(name, "")
	}
	source := emptyRepository(t, c)
	source.add("", filepath.Join("testdata", "rails"))
	source.commit("a blog")

	const name, host = "rails-pgsql-persistent", "blog.example.com"
	c.OC("new-app", name, "-p", "SOURCE_REPOSITORY_URL="+source.url, "-p", "SOURCE_REPOSITORY_REF=main", "-p", "APPLICATION_DOMAIN="+host,
		"-p", "RUBYGEM_MIRROR="+gemMirror(t, c))
	waitOutput(c, "build/"+name+"-1", "{.status.phase}", "Complete")
	if log := c.OC("logs", "build/"+name+"-1"); !strings.Contains(log, "Installing rails 6.1") || !strings.Contains(log, "---> Compiling assets") {
		t.Errorf("the log of the build is\n%s", log)
	}
	waitOutput(c, "rc/"+name+"-1", deploymentPhase, "Complete")
	waitPage(c, host, "<h1>Articles of PostgreSQL</h1>")

	client := visitor(c)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.PostForm("http://"+host+"/articles", url.Values{"article[title]": {"Kept & shown"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusFound {
		t.Fatalf("an article is created with %s", response.Status)
	}
	// Both pods start again: the article is on the volume.
	c.OC("delete", "pod", "--wait", c.OnlyPod("name=postgresql").Name, c.OnlyPod("name="+name).Name)
	waitPage(c, host, "<li>Kept &amp; shown</li>")
	page, err := get(visitor(c), "http://"+host+"/")
	if err != nil {
		t.Fatal(err)
	}
	_, style, _ := strings.Cut(page, `href="`)
	style, _, _ = strings.Cut(style, `"`)
	if css, err := get(visitor(c), "http://"+host+style); err != nil || !strings.Contains(css, "sans-serif") {
		t.Errorf("the compiled style %q is %q, %v", style, css, err)
	}
}
