package application

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// login is the Dockerfile for an image that serves a page at the path of Jenkins' login page.
const login = `FROM localhost/slipway-tools:current
CMD ["sh", "-c", "mkdir -p /tmp/pages && echo \"login of $JENKINS_SERVICE_NAME\" >/tmp/pages/login && exec httpd -f -p 8080 -h /tmp/pages"]
`

// An administrator provides the Jenkins image, which the template deploys for a project's
// pipelines.
func TestJenkinsTemplateDeploysImageOfAdministrator(t *testing.T) {
	c := kit.Shared(t)
	user := []string{"--as=alice", "--as-group=system:authenticated"}
	c.OC("policy", "add-role-to-user", "admin", "alice")
	for _, template := range []string{"jenkins-ephemeral", "jenkins-persistent"} {
		_, err := c.TryOC(append([]string{"new-app", template}, user...)...)
		if err == nil || !strings.Contains(err.Error(), ": oc import-image jenkins:2 -n openshift --from=IMAGE --confirm") {
			t.Errorf("without the image, new-app of %s prints %v", template, err)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Dockerfile"), login)
	c.MustSlipway("images", "build", "--tag=localhost/jenkins", dir)
	c.MustSlipway("images", "publish", "localhost/jenkins:latest", "openshift/jenkins:2")
	c.OC(append([]string{"new-app", "jenkins-persistent", "-p", "MEMORY_LIMIT=64Mi"}, user...)...)
	c.OC("rollout", "status", "dc/jenkins")
	host := c.OC("get", "route/jenkins", "-o", "jsonpath={.spec.host}")
	client := c.Visitor()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.WaitFor("the route of Jenkins", func(context.Context) error {
		response, err := client.Get("http://" + host + "/login")
		if err != nil {
			return err
		}
		response.Body.Close()
		if to := response.Header.Get("Location"); to != "https://"+host+"/login" {
			return fmt.Errorf("it is answered with %s to %q", response.Status, to)
		}
		return nil
	})
	pod := c.OnlyPod("name=jenkins")
	c.WaitFetch(pod.Name, "http://jenkins/login", "login of jenkins")
	if got := pod.Spec.ServiceAccountName; got != "jenkins" {
		t.Errorf("Jenkins has the service account %q", got)
	}
	account := "--as=system:serviceaccount:" + c.Namespace + ":jenkins"
	if out, err := c.TryOC("auth", "can-i", "update", "builds", account); err != nil || strings.TrimSpace(out) != "yes" {
		t.Errorf("Jenkins may not update builds: %s %v", out, err)
	}
	if got := c.OC("get", "pvc/jenkins", "-o", "jsonpath={.status.phase}"); got != "Bound" {
		t.Errorf("the volume of Jenkins is %s", got)
	}
}
