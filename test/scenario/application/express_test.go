package application

import (
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestBuilderServesExpress(t *testing.T) {
	for _, image := range selected([]string{"nodejs"}, nil) {
		t.Run(image, serveExpress)
	}
}

// serveExpress builds and serves a Node.js application with fifty modules from Debian.
func serveExpress(t *testing.T) {
	c := kit.Shared(t)
	c.BuildSample("nodejs", "")
	dir := t.TempDir()
	mirror := serve(t, c, http.FileServer(http.Dir(dir)))
	write := exec.CommandContext(t.Context(), "/usr/bin/python3", filepath.Join("testdata", "nodemodules.py"), dir, mirror, "express")
	if output, err := write.CombinedOutput(); err != nil {
		t.Fatalf("write the mirror: %v\n%s", err, output)
	}
	setBuildDefaults(t, c, map[string]string{"NPM_MIRROR": mirror})
	source := emptyRepository(t, c)
	source.add("", filepath.Join("testdata", "express"))
	source.commit("orders")
	const name, host = "nodejs-example", "express.example.com"
	c.OC("new-app", name, "-p", "SOURCE_REPOSITORY_URL="+source.url, "-p", "SOURCE_REPOSITORY_REF=main", "-p", "CONTEXT_DIR=", "-p", "APPLICATION_DOMAIN="+host)
	waitOutput(c, "build/"+name+"-1", "{.status.phase}", "Complete")
	waitPage(c, host, "<h1>Orders of Express</h1>0")
	response, err := visitor(c).PostForm("http://"+host+"/orders", url.Values{"title": {"Tea"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated || string(body) != `["Tea"]` {
		t.Errorf("an order is answered with %s %s, %v", response.Status, body, err)
	}
}
