package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestPushCreatesStreamAndPodRunsIt(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "hello")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.OC("get", "istag", "app:v1", "-o", "jsonpath={.image.metadata.name} {.image.dockerImageReference} {.image.dockerImageMetadata.Config.Env}"); got !=
		fmt.Sprintf(`%s docker-registry.default.svc:5000/%s/app@%s ["WORD=hello"]`, digest, p.Namespace, digest) {
		t.Errorf("the tag is %s", got)
	}
	if _, err := p.pull("app:v1", p.token); err != nil {
		t.Error(err)
	}
	if _, err := p.pull("app@"+digest.String(), p.token); err != nil {
		t.Error(err)
	}
	if got, err := p.try("list-tags", "--cert-dir", "CERTIFICATES", "--creds", "any:"+p.token, p.repository("app")); err != nil || !strings.Contains(got, `"v1"`) {
		t.Errorf("tags: %s, %v", got, err)
	}
	read := func() string {
		return p.OC("get", "image", digest.String(), "-o", "jsonpath={.metadata.resourceVersion}")
	}
	before := read()
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	if read() == before {
		t.Error("the record of an image that was pushed again did not change, so a concurrent prune would remove it")
	}

	p.OC("create", "secret", "docker-registry", "registry", "--docker-server=docker-registry.default.svc:5000", "--docker-username=any", "--docker-password="+p.token)
	p.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  imagePullSecrets: [{name: registry}]
  containers: [{name: app, image: "docker-registry.default.svc:5000/%[1]s/app:v1", imagePullPolicy: Always}]
---
apiVersion: v1
kind: Pod
metadata: {name: outside}
spec:
  containers: [{name: app, image: "%[2]s/%[1]s/app:v1", imagePullPolicy: Always}]
`, p.Namespace, routeHost))
	p.WaitPodRunning("app")
	// The pod pulls from the route's host name with its service account's secret, although DNS does
	// not resolve this host name.
	p.WaitPodRunning("outside")
	p.WaitFor("the pod reports what is in its image", func(context.Context) error {
		if got, err := p.TryOC("logs", "app"); strings.TrimSpace(got) != "hello" {
			return fmt.Errorf("got %q, %v", got, err)
		}
		return nil
	})
}

func TestOtherProjectsCannotPullOrPush(t *testing.T) {
	p := newProject(t)
	dir, _ := image(t, "secret")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	stranger := newProjectOf(t, p)
	for name, try := range map[string]func(token string) error{
		"pull": func(token string) error { _, err := p.pull("app:v1", token); return err },
		"push": func(token string) error { return p.push(dir, "app:v2", token) },
	} {
		if err := try(stranger); err == nil || !strings.Contains(err.Error(), "no permission to") && !strings.Contains(err.Error(), "403") {
			t.Errorf("%s by a stranger: %v", name, err)
		}
		if err := try("made-up"); err == nil {
			t.Errorf("%s with an invalid token succeeds", name)
		}
	}
	reader := p.account("reader", "system:image-puller")
	if _, err := p.pull("app:v1", reader); err != nil {
		t.Error(err)
	}
	if err := p.push(dir, "app:v3", reader); err == nil {
		t.Error("a user with pull permission only can push")
	}
}

func TestBlobMountsRequirePullPermission(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "secret")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	layers, err := result.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	ask := url.Values{"from": {p.Namespace + "/app"}, "mount": {digest.String()}}
	stranger := newProjectOf(t, p)
	for _, tt := range []struct {
		name, token, namespace string
		query, form            url.Values
		want                   int
	}{
		{"of its own project", p.token, p.Namespace, ask, nil, http.StatusCreated},
		{"of another project", stranger, p.Namespace + "-other", ask, nil, http.StatusAccepted},
		{"of another project, requested in the body", stranger, p.Namespace + "-other", nil, ask, http.StatusAccepted},
	} {
		address := fmt.Sprintf("https://%s:5000/v2/%s/copy/blobs/uploads/?%s", p.Address, tt.namespace, tt.query.Encode())
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(tt.form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.SetBasicAuth("any", tt.token)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.want {
			t.Errorf("a layer %s: status %s, want %d", tt.name, response.Status, tt.want)
		}
	}
}

// newProjectOf creates another project, and an account that has all permissions in it. It returns
// the account's token.
func newProjectOf(t *testing.T, p *project) (token string) {
	t.Helper()
	name := p.Namespace + "-other"
	p.OC("create", "namespace", name)
	t.Cleanup(func() { p.OC("delete", "namespace", name, "--wait=false") })
	other := &project{p.In(name), t, ""}
	return other.account("pusher", "admin")
}
