package application

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestPushUpdatesPageWithoutLostRequest(t *testing.T) {
	c := kit.Shared(t)
	publishBuilders(c)
	source := newRepository(t, c)

	// Create three applications: golang from a builder and a source on the command line, nodejs
	// from a quickstart, and python from a quickstart that stores data. If the command line does
	// not specify a builder, new-app detects the language.
	if plan := c.OC("new-app", source.url, "--context-dir=examples/nodejs", "--dry-run", "-o", "yaml"); !strings.Contains(plan, "name: nodejs:18\n") {
		t.Errorf("new-app did not select the builder of the language:\n%s", plan)
	}
	c.OC("new-app", "golang~"+source.url+"#main", "--context-dir=examples/golang", "--name=golang")
	c.OC("patch", "bc/golang", "-p", `{"spec": {"strategy": {"sourceStrategy": {"incremental": true}}}}`)
	c.OC("expose", "svc/golang", "--hostname=golang.example.com")
	for _, template := range []string{"nodejs-example", persistent} {
		host := strings.Split(template, "-")[0] + ".example.com"
		c.OC("new-app", template, "-p", "SOURCE_REPOSITORY_URL="+source.url, "-p", "SOURCE_REPOSITORY_REF=main", "-p", "APPLICATION_DOMAIN="+host)
	}
	for _, application := range []string{"golang", "nodejs-example", persistent} {
		waitOutput(c, "build/"+application+"-1", "{.status.phase}", "Complete")
	}
	for _, language := range languages {
		c.WaitVisit("http://"+language+".example.com/", "<dt>Version<dd>1<")
	}
	before := visits(t, c)

	// Call the webhooks as a Git host does after a push. Send a request to the GitHub webhook, and
	// call the generic webhook with the command for private repositories.
	stop := load(c, "http://nodejs.example.com/")
	commit := source.push("2")
	callGitHub(t, c, hook(c, "nodejs-example", "github"), commit)
	c.OC("start-build", "--from-webhook="+hook(c, "golang", "generic"))
	c.WaitVisit("http://golang.example.com/", "<dt>Version<dd>2<")
	c.WaitFor("new page in the browser", func(ctx context.Context) error {
		page, err := c.Browse(ctx, "http://nodejs.example.com/")
		if err == nil && (!strings.Contains(page, "Version</dt><dd>2</dd>") || !strings.Contains(page, "<dd>"+commit[:7]+"</dd>")) {
			err = fmt.Errorf("it shows\n%s", page)
		}
		return err
	})
	waitOutput(c, "rc/nodejs-example-2", deploymentPhase, "Complete")
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed during the update, the first with: %v", len(failures), failures[0])
	}
	if log := c.OC("logs", "build/golang-2"); !strings.Contains(log, "Using the compiled packages of the last build") {
		t.Errorf("the second build did not use the result of the first:\n%s", log)
	}
	if got := c.OC("get", "build/nodejs-example-2", "-o", "jsonpath={.spec.triggeredBy[0].message} {.spec.revision.git.commit}"); got != "GitHub WebHook "+commit {
		t.Errorf("the second build is of %s", got)
	}

	// A new builder image triggers a build, whose new image triggers a deployment. The data on the
	// volume must remain.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Dockerfile"), "FROM localhost/sample-python:3.11\nENV BUILDER=second\n")
	c.MustSlipway("images", "build", "--tag=localhost/second", dir)
	c.MustSlipway("images", "publish", "localhost/second:latest", "openshift/python:3.11")
	waitOutput(c, "build/"+persistent+"-2", "{.spec.triggeredBy[0].message} {.status.phase}", "Image change Complete")
	waitOutput(c, "rc/"+persistent+"-2", deploymentPhase+" {.spec.template.spec.containers[0].image}",
		"Complete "+c.OC("get", "istag/"+persistent+":latest", "-o", "jsonpath={.image.dockerImageReference}"))
	if got := c.Exec(c.OnlyPod("name="+persistent).Name, "sh", "-c", "echo $BUILDER"); got != "second\n" {
		t.Errorf("the new image is built from the builder %q", got)
	}
	c.WaitVisit("http://python.example.com/", "<dt>Version<dd>2<")
	if after := visits(t, c); after <= before {
		t.Errorf("the page counted %d visits before, and %d now", before, after)
	}
}

// persistent is the quickstart that counts visits in a file on its volume.
const persistent = "python-persistent-example"

// deploymentPhase is the path of the annotation that contains a replication controller's deployment
// phase.
const deploymentPhase = `{.metadata.annotations.openshift\.io/deployment\.phase}`

// visits returns the number of visits that the page shows, including this function's own visits.
func visits(t *testing.T, c *kit.Cluster) (number int) {
	t.Helper()
	for range 5 {
		page, err := c.Visit(t.Context(), "http://python.example.com/", "")
		_, rest, ok := strings.Cut(page, "<dt>Visits<dd>")
		if err == nil && !ok {
			err = fmt.Errorf("the page shows no number of visits: %q", page)
		}
		if err == nil {
			_, err = fmt.Sscanf(rest, "%d", &number)
		}
		if err != nil {
			t.Fatalf("read the number of visits: %v", err)
		}
	}
	return number
}

// hook returns the webhook URL that an administrator enters at the Git host.
func hook(c *kit.Cluster, build, kind string) string {
	secret := c.OC("get", "bc/"+build, "-o", "jsonpath={.spec.triggers[*]."+kind+".secret}")
	return strings.ReplaceAll(strings.TrimSpace(c.OC("start-build", build, "--list-webhooks="+kind)), "<secret>", secret)
}

// callGitHub calls a webhook as GitHub does after a push.
func callGitHub(t *testing.T, c *kit.Cluster, address, commit string) {
	t.Helper()
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"ref": "refs/heads/main", "head_commit": {"id": %q, "message": "version 2", "author": {"name": "A", "email": "a@example.com"}}}`, commit)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-GitHub-Event", "push")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the hook responds with %s", response.Status)
	}
}
