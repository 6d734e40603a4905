package application

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestQuickstartsWorkOnNewCluster(t *testing.T) {
	c := kit.Shared(t)
	c.OC("policy", "add-role-to-user", "admin", "alice")
	list := c.OC("new-app", "-L", "--as=alice", "--as-group=system:authenticated")
	for _, name := range []string{"golang", "nodejs", "python", "golang-example", "httpd-example", "nodejs-example", "python-example", "python-persistent-example", "static-page",
		"rails-pgsql-persistent", "rails-postgresql-example", "openjdk-web-basic-s2i", "openjdk18-web-basic-s2i", "java",
		"nginx-example", "cakephp-mysql-persistent", "dancer-mysql-example", "django-psql-persistent", "jenkins-ephemeral", "jenkins-persistent"} {
		if !strings.Contains(list, name+"\n  Project: openshift\n") {
			t.Errorf("%s is missing in\n%s", name, list)
		}
	}
	c.OC("new-app", "static-page", "-p", "GREETING=Good morning", "-p", "APPLICATION_DOMAIN=first.example.com", "--as=alice", "--as-group=system:authenticated")
	c.WaitVisit("http://first.example.com/", "<h1>Good morning</h1>")
}
