// Package console tests on a real cluster that users can work with the web console and that
// attackers cannot misuse it. Users work with a browser on a separate machine (kit.Play). Each user
// flow is a script in this folder: a Playwright script for Chromium, or a Puppeteer script for
// Firefox, which Playwright cannot drive. Attackers send requests without a browser.
package console

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// site is a cluster's web console.
type site struct {
	*kit.Cluster
	t   *testing.T
	url string
}

func siteOf(t *testing.T, c *kit.Cluster) *site {
	return &site{c, t, "https://" + c.Address.String() + ":8443"}
}

// play runs a script in this folder.
func (s *site) play(script string, args ...string) {
	s.t.Helper()
	s.start(script, args...)()
}

// start starts a script in this folder, and returns a function that waits until the script exits.
func (s *site) start(script string, args ...string) (wait func()) {
	s.t.Helper()
	firefox, err := exec.LookPath("firefox-esr")
	if err != nil {
		s.t.Fatalf("%v: run make setup", err)
	}
	environment := []string{
		"CONSOLE_URL=" + s.url, "CONSOLE_PASSWORD=" + s.DeveloperPassword(), "CONSOLE_IMAGE=" + kit.ToolsImage,
		"CONSOLE_SCREENSHOTS=" + os.Getenv("CONSOLE_SCREENSHOTS"), "FIREFOX=" + firefox,
	}
	var output string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		output, err = s.Play(s.t.Context(), environment, s.RepositoryFile("test", "scenario", "console", script), args...)
	}()
	s.t.Cleanup(func() { <-ended })
	return func() {
		s.t.Helper()
		<-ended
		if err != nil {
			s.t.Fatal(err)
		}
		if output != "" {
			s.t.Log(output)
		}
	}
}

// application gives the developer access to the test's project, which contains a running
// application.
func (s *site) application() {
	s.t.Helper()
	s.MustSlipway("oc", "adm", "policy", "add-role-to-user", "admin", "developer", "-n", s.Namespace)
	s.Apply(strings.ReplaceAll(application, "IMAGE", kit.ToolsImage))
}

// administrator gives the developer all permissions until the test ends.
func (s *site) administrator() {
	s.t.Helper()
	s.MustSlipway("oc", "adm", "policy", "add-cluster-role-to-user", "cluster-admin", "developer")
	s.t.Cleanup(func() {
		s.MustSlipway("oc", "adm", "policy", "remove-cluster-role-from-user", "cluster-admin", "developer")
	})
}

// node returns the name of the cluster's only node.
func (s *site) node() string {
	s.t.Helper()
	return s.OC("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
}

const application = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: front
  annotations: {link: "javascript:alert(1)", text: "<script>alert(1)</script>"}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: IMAGE
        command: [sh, -c, 'printf "\033[31m<img src=x onerror=alert(1)>\033[0m\nready and listening\n"; exec httpd -f -p 8080']
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: front}
  ports: [{port: 8080}]
`
