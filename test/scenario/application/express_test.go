package application

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestBuilderServesExpress(t *testing.T) {
	for _, image := range selected([]string{"nodejs"}, nil) {
		t.Run(image, func(t *testing.T) {
			c := kit.Shared(t)
			c.BuildSample(image, "")
			s := publishExpress(t, c)
			setBuildDefaults(t, c, map[string]string{"NPM_MIRROR": s.mirror})
			checkExpress(t, c, s)
		})
	}
}

// publishExpress serves a Node.js application, and a mirror of its fifty modules from Debian
// packages.
func publishExpress(t *testing.T, c *kit.Cluster) site {
	t.Helper()
	return publish(t, c, "express", func(dir, address string) []string {
		return []string{"/usr/bin/python3", filepath.Join("testdata", "nodemodules.py"), dir, address, "express"}
	})
}

// checkExpress builds and serves the application. Builds must already have the NPM_MIRROR variable.
func checkExpress(t *testing.T, c *kit.Cluster, s site) {
	const name, host = "nodejs-example", "express.example.com"
	c.OC("new-app", name, "-p", "SOURCE_REPOSITORY_URL="+s.source, "-p", "SOURCE_REPOSITORY_REF=main", "-p", "CONTEXT_DIR=", "-p", "APPLICATION_DOMAIN="+host)
	waitBuild(c, name+"-1")
	c.WaitVisit("http://"+host+"/", "<h1>Orders of Express</h1>0")
	response, err := c.Visitor().PostForm("http://"+host+"/orders", url.Values{"title": {"Tea"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated || string(body) != `["Tea"]` {
		t.Errorf("an order is answered with %s %s, %v", response.Status, body, err)
	}
}
