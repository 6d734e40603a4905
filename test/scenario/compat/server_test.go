package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// post sends an object to a path and returns the response.
func post(t *testing.T, c *kit.Cluster, path, body string) map[string]any {
	t.Helper()
	raw, err := c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestReviewsWorkInMissingNamespaces(t *testing.T) {
	c := kit.Shared(t)
	for _, base := range []string{"/apis/authorization.openshift.io/v1", "/oapi/v1"} {
		version := strings.TrimPrefix(base, "/apis/")
		if base == "/oapi/v1" {
			version = "v1"
		}
		head := `{"apiVersion": "` + version + `", "kind": `
		namespaced := base + "/namespaces/does-not-exist/"
		if got := post(t, c, namespaced+"localsubjectaccessreviews", head+`"LocalSubjectAccessReview", "verb": "get", "resource": "pods"}`); got["allowed"] != true {
			t.Errorf("%s: the administrator's review is %v", base, got)
		}
		post(t, c, namespaced+"localresourceaccessreviews", head+`"LocalResourceAccessReview", "verb": "get", "resource": "pods"}`)
		post(t, c, namespaced+"selfsubjectrulesreviews", head+`"SelfSubjectRulesReview", "spec": {}}`)
	}
}

func TestReviewsOfAccountsShowGrantedConstraints(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "serviceaccount", "plain")
	c.OC("create", "serviceaccount", "strong")
	c.OC("adm", "policy", "add-scc-to-user", "privileged", "-z", "strong")
	t.Cleanup(func() { c.OC("adm", "policy", "remove-scc-from-user", "privileged", "-z", "strong") })
	review := func(account string) map[string]any {
		return post(t, c, "/apis/security.openshift.io/v1/namespaces/"+c.Namespace+"/podsecuritypolicyreviews",
			`{"apiVersion": "security.openshift.io/v1", "kind": "PodSecurityPolicyReview", "spec": {"serviceAccountNames": ["`+account+`"],
			"template": {"spec": {"containers": [{"name": "a", "image": "localhost/a"}]}}}}`)["status"].(map[string]any)
	}
	if got := review("plain")["allowedServiceAccounts"].([]any); len(got) != 0 {
		t.Errorf("an account without grants: %v", got)
	}
	c.WaitFor("grant", func(context.Context) error {
		if got := review("strong")["allowedServiceAccounts"].([]any); len(got) != 1 {
			return fmt.Errorf("allowed are %v", got)
		}
		return nil
	})
}

func TestTokenTakesPrecedenceOverCertificate(t *testing.T) {
	c := kit.Shared(t)
	token := strings.TrimSpace(c.OC("create", "token", "default"))
	whoami := func(token string) (string, int) {
		config := rest.CopyConfig(c.Config)
		config.BearerToken = token
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(config.Host + "/apis/user.openshift.io/v1/users/~")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var user struct{ Metadata struct{ Name string } }
		_ = json.NewDecoder(resp.Body).Decode(&user)
		return user.Metadata.Name, resp.StatusCode
	}
	if name, code := whoami(""); code != http.StatusOK || name == "" {
		t.Errorf("with the certificate: %s, code %d", name, code)
	}
	if name, _ := whoami(token); name != "system:serviceaccount:"+c.Namespace+":default" {
		t.Errorf("with certificate and token: %s", name)
	}
	if _, code := whoami("bogus"); code != http.StatusUnauthorized {
		t.Errorf("with certificate and an invalid token: code %d", code)
	}
}

func TestObjectsHaveTheFormOf311(t *testing.T) {
	c := kit.Shared(t)
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(`
{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: ruby}, spec: {tags: [{name: b, from: {kind: ImageStreamTag, name: c}}, {name: a}, {name: c}]}}
---
{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: web}, spec: {source: {binary: {}}, triggers: [{type: ConfigChange}, {type: ImageChange}],
  strategy: {sourceStrategy: {from: {kind: DockerImage, name: localhost/ruby}}}}}
---
{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: 0, triggers: [{type: ImageChange, imageChangeParams: {containerNames: [web], from: {kind: ImageStream, name: ruby}}}],
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web}]}}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.OC("create", "-f", file)
	for arguments, want := range map[string]string{
		"is/ruby -o jsonpath={.spec.tags[*].name}":                        "a b c",
		"bc/web -o jsonpath={.spec.triggers[*].type}":                     "ConfigChange",
		"dc/web -o jsonpath={.spec.triggers[*].imageChangeParams.from.*}": "ImageStreamTag ruby:latest",
	} {
		got := c.OC(append([]string{"get"}, strings.Fields(arguments)...)...)
		if !sameWords(got, want) {
			t.Errorf("%s is %q, want %q", arguments, got, want)
		}
	}
	body := `{"apiVersion": "build.openshift.io/v1", "kind": "BuildRequest", "metadata": {"name": "web"}, "dockerStrategyOptions": {"noCache": true}}`
	raw, err := c.Client.CoreV1().RESTClient().Post().AbsPath("/apis/build.openshift.io/v1/namespaces/"+c.Namespace+"/buildconfigs/web/instantiate").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(t.Context())
	if err == nil || !strings.Contains(string(raw), "Cannot specify Docker build specific options") {
		t.Errorf("Docker options for a Source build: %v, %s", err, raw)
	}
}

// sameWords reports whether two strings contain the same words, in any order. The order in which a
// JSONPath prints an object's fields is undefined.
func sameWords(a, b string) bool {
	first, second := strings.Fields(a), strings.Fields(b)
	slices.Sort(first)
	slices.Sort(second)
	return slices.Equal(first, second)
}

func TestStoredTokensCanBeUpdatedUnchanged(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "user", "token-owner")
	uid := c.OC("get", "user", "token-owner", "-o", "jsonpath={.metadata.uid}")
	name := strings.Repeat("token", 8)
	t.Cleanup(func() {
		c.OC("delete", "oauthaccesstoken", name, "--ignore-not-found")
		c.OC("delete", "user", "token-owner")
	})
	path := "/apis/oauth.openshift.io/v1/oauthaccesstokens"
	post(t, c, path, `{"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthAccessToken", "metadata": {"name": "`+name+`"},
		"clientName": "openshift-challenging-client", "userName": "token-owner", "userUID": "`+uid+`"}`)
	data, err := c.Client.CoreV1().RESTClient().Get().AbsPath(path + "/" + name).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// `oc adm migrate storage` updates each object without a change.
	raw, err := c.Client.CoreV1().RESTClient().Put().AbsPath(path+"/"+name).SetHeader("Content-Type", "application/json").Body(data).DoRaw(t.Context())
	if err != nil {
		t.Errorf("update without a change: %v: %s", err, raw)
	}
}

func TestReviewsWorkForMissingProjects(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "clusterquota", "missing-projects", "--project-label-selector=owner=nobody", "--hard=secrets=10")
	t.Cleanup(func() { c.OC("delete", "clusterquota", "missing-projects") })
	path := "/apis/authorization.openshift.io/v1/namespaces/missing-project/localresourceaccessreviews"
	body := `{"apiVersion": "authorization.openshift.io/v1", "kind": "LocalResourceAccessReview", "verb": "get", "resource": "pods"}`
	raw, err := c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(raw), "system:masters") {
		t.Errorf("who may get pods of a project that does not exist: %v: %s", err, raw)
	}
}

func TestTagWithoutTargetKeepsAnnotations(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "istag", "annotated:v1", "-A", "color=blue")
	if got := c.OC("get", "is", "annotated", "-o", "jsonpath={.spec.tags[0].annotations.color}"); got != "blue" {
		t.Errorf("the tag has the color %q", got)
	}
	if output, err := c.TryOC("get", "istag", "annotated:v1"); err == nil || !strings.Contains(err.Error()+output, "not found") {
		t.Errorf("the tag exists without an image: %v: %s", err, output)
	}
	if got := c.OC("get", "istag", "-o", "name"); strings.Contains(got, "annotated:v1") {
		t.Errorf("the list of tags has a tag without an image: %s", got)
	}
	c.OC("delete", "istag", "annotated:v1")
}

func TestListsOfTagsMatchFieldSelectors(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "is", "selected")
	for _, tag := range []string{"v1", "v2"} {
		post(t, c, "/apis/image.openshift.io/v1/namespaces/"+c.Namespace+"/imagestreammappings", `{"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping",
			"metadata": {"name": "selected"}, "tag": "`+tag+`", "image": {"metadata": {"name": "sha256:`+strings.Repeat("5", 64)+`"}, "dockerImageMetadata": {"Architecture": "amd64"}}}`)
	}
	for resource, want := range map[string]string{"istag": "imagestreamtag.image.openshift.io/selected:v2", "imagetags": "imagetag.image.openshift.io/selected:v2"} {
		if got := c.OC("get", resource, "--field-selector", "metadata.name=selected:v2", "-o", "name"); strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
}

// TestSecretsOfNewProject checks the number of secrets that docs/compat.md implies: each of three
// service accounts has a token, and registry credentials with that token. In OpenShift 3.11, each
// account had a second token.
func TestSecretsOfNewProject(t *testing.T) {
	c := kit.Shared(t)
	// Wait for the secrets before creating the quota. If a secret is created at the same time as
	// the quota, upstream counts the secret only minutes later.
	c.WaitFor("six secrets", func(context.Context) error {
		names, err := c.TryOC("get", "secrets", "-o", "name")
		if number := len(strings.Fields(names)); err == nil && number != 6 {
			err = fmt.Errorf("the project has %d secrets", number)
		}
		return err
	})
	c.Apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: count}, spec: {hard: {secrets: 20}}}")
	c.WaitFor("six counted secrets", func(context.Context) error {
		used, err := c.TryOC("get", "quota/count", "-o", "jsonpath={.status.used.secrets}")
		if err == nil && used != "6" {
			err = fmt.Errorf("%q are counted", used)
		}
		return err
	})
}

func TestProjectOfNodeGroupsCanBeDeleted(t *testing.T) {
	c := kit.Shared(t)
	c.OC("delete", "project", "openshift-node", "--wait=false")
	c.WaitFor("end of the project openshift-node", func(context.Context) error {
		out, err := c.TryOC("get", "ns", "openshift-node", "-o", "jsonpath={.status.conditions}")
		if err == nil {
			return fmt.Errorf("it exists: %s", out)
		}
		if !strings.Contains(err.Error(), "not found") {
			return err
		}
		return nil
	})
	c.OC("create", "ns", "openshift-node")
}

func TestProfilesRequireRight(t *testing.T) {
	c := kit.Shared(t)
	if got := c.OC("get", "--raw", "/debug/pprof/"); !strings.Contains(got, "goroutine") {
		t.Errorf("the administrator gets %q", got)
	}
	token := "--token=" + strings.TrimSpace(c.OC("create", "token", "default"))
	for _, path := range []string{"/debug/pprof/", "/metrics"} {
		if out, err := c.TryOC("get", "--raw", path, token); err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("a service account gets %d bytes of %s, %v", len(out), path, err)
		}
	}
	c.OC("adm", "policy", "add-cluster-role-to-user", "cluster-debugger", "-z", "default")
	t.Cleanup(func() { c.OC("adm", "policy", "remove-cluster-role-from-user", "cluster-debugger", "-z", "default") })
	c.WaitFor("right to read profiles", func(context.Context) error {
		_, err := c.TryOC("get", "--raw", "/debug/pprof/", token)
		return err
	})
	if got := c.OC("get", "--raw", "/metrics", token); !strings.Contains(got, "apiserver_request_total") {
		t.Errorf("metrics of the API server are %d bytes without apiserver_request_total", len(got))
	}
}
