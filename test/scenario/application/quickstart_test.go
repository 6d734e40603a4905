package application

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// visitor returns an HTTP client that connects to a cluster's router.
func visitor(c *kit.Cluster) *http.Client {
	dialer := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, "tcp4", "127.0.0.1:80") }
	return &http.Client{Transport: &http.Transport{DialContext: dialer, DisableKeepAlives: true}, Timeout: time.Minute}
}

// get requests a page. Any status other than 200 is an error.
func get(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the response is %s: %.200s", response.Status, body)
	}
	return string(body), err
}

// waitPage waits until a host serves a page that contains the given text.
func waitPage(c *kit.Cluster, host, want string) {
	client := visitor(c)
	c.WaitFor("a page of "+host+" with "+want, func(context.Context) error {
		page, err := get(client, "http://"+host+"/")
		if err == nil && !strings.Contains(page, want) {
			err = fmt.Errorf("it is %q", page)
		}
		return err
	})
}

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
	waitPage(c, "first.example.com", "<h1>Good morning</h1>")
}
