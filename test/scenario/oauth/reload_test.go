package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// reloads changes a running cluster's configuration. The change must not affect users who are
// logged in or are logging in.
func reloads(t *testing.T, b *fixture, s *server) {
	before := s.Status().PID("control-plane")
	token, browser := s.token("developer", s.DeveloperPassword()), s.browser()
	values := s.do(browser, http.MethodGet, "/login/file?"+url.Values{"then": {implicit}}.Encode(), nil, nil).fields()
	template := b.file("login.html", `<form><input name="csrf" value="{{.Values.CSRF}}">Our own page</form>`)
	s.OC("create", "-n", "default", "-f", b.file("request.yaml", requestTemplate))
	b.write(append(b.providers(),
		provider("anyone", "claim", false, "AllowAllPassword", ""),
		"templates: {login: "+template+"}",
		"tokenConfig: {accessTokenMaxAgeSeconds: 1000}",
	), b.audit,
		"projectConfig: {projectRequestMessage: ask the operator, projectRequestTemplate: default/small}",
		"admissionConfig: {pluginConfig: {RunOnceDuration: {configuration: {apiVersion: v1, kind: RunOnceDurationConfig, activeDeadlineSecondsOverride: 1234}}}}",
		"routingConfig: {subdomain: other.example.com}")
	s.waitStatus("at the next start: routingConfig.subdomain")

	if got := s.do(s.browser(), http.MethodGet, "/login/anyone", nil, nil); !strings.Contains(got.body, "Our own page") {
		t.Errorf("the template has no effect: %s", got.body)
	}
	someone := s.browser()
	s.form(someone, "anyone", "mallory", "whatever")
	if user := s.self(s.tokenOf(someone)); user.Metadata.Name != "mallory" {
		t.Errorf("AllowAll: %+v", user)
	}
	got := s.do(s.browser(), http.MethodGet, implicit, nil, basic("developer", s.DeveloperPassword())).location(t)
	if !strings.Contains(got.Fragment, "expires_in=1000") {
		t.Errorf("the age of tokens has no effect: %s", got.Fragment)
	}
	if result, err := s.TryOC("new-project", "small-one", "--skip-config-write"); err != nil || s.OC("get", "namespace", "small-one", "-o", "jsonpath={.metadata.labels.size}") != "small" {
		t.Errorf("the template of projects has no effect: %s, %v", result, err)
	}
	s.OC("adm", "policy", "remove-cluster-role-from-group", "self-provisioner", "system:authenticated:oauth")
	reply := s.do(s.browser(), http.MethodGet, "/apis/project.openshift.io/v1/projectrequests", nil, bearer(token))
	if s.OC("adm", "policy", "add-cluster-role-to-group", "self-provisioner", "system:authenticated:oauth"); !strings.Contains(reply.body, "ask the operator") {
		t.Errorf("the message about projects has no effect: %s", reply.body)
	}
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: once}, spec: {restartPolicy: Never, containers: [{name: a, image: localhost/a}]}}`
	if _, err := s.TryOCWithInput(pod, "create", "-f", "-"); err != nil || s.OC("get", "pod", "once", "-o", "jsonpath={.spec.activeDeadlineSeconds}") != "1234" {
		t.Errorf("RunOnceDuration has no effect: %v", err)
	}
	s.OC("delete", "pod", "once", "--now")

	// In-flight logins must continue after the change.
	values.Set("username", "developer")
	values.Set("password", s.DeveloperPassword())
	if back := s.do(browser, http.MethodPost, "/login/file", values, nil).location(t); back.Path != "/oauth/authorize" {
		t.Errorf("a login from before the change is redirected to %s", back)
	}
	if user := s.self(token); user.Metadata.Name != "developer" {
		t.Errorf("the user of an older token is %+v", user)
	}
	damaged(t, b, s)
	if after := s.Status().PID("control-plane"); after != before {
		t.Errorf("the control plane was restarted: process %d, then %d", before, after)
	}
}

// damaged writes an invalid configuration, and then restores the initial configuration.
func damaged(t *testing.T, b *fixture, s *server) {
	b.write([]string{"identityProviders: [{name: file, provider: {kind: Nonsense}}]"}, b.audit, "projectConfig: {projectRequestMessage: lost}")
	s.waitStatus("the changed configuration was rejected, so the previous configuration remains in effect")
	if user := s.self(s.token("developer", s.DeveloperPassword())); user.Metadata.Name != "developer" {
		t.Errorf("the user with a damaged file is %+v", user)
	}
	b.write(b.providers(), b.audit)
	s.WaitFor("the first configuration to take effect again", func(context.Context) error {
		if got := s.do(s.browser(), http.MethodGet, "/login/anyone", nil, nil); got.StatusCode != http.StatusNotFound {
			return fmt.Errorf("the page of a removed provider: %s", got.Status)
		}
		if got := s.MustSlipway("status"); strings.Contains(got, "configuration:") {
			return errors.New(got)
		}
		return nil
	})
}

// requestTemplate is a project template that adds a label to new projects.
const requestTemplate = `
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: small}
parameters: [{name: PROJECT_NAME}, {name: PROJECT_ADMIN_USER}]
objects:
- {apiVersion: project.openshift.io/v1, kind: Project, metadata: {name: "${PROJECT_NAME}", labels: {size: small}}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: admin, namespace: "${PROJECT_NAME}"}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "${PROJECT_ADMIN_USER}"}]
`

// waitStatus waits until `slipway status` prints the given text.
func (s *server) waitStatus(text string) {
	s.t.Helper()
	s.WaitFor("status of the configuration", func(context.Context) error {
		if got := s.MustSlipway("status"); !strings.Contains(got, text) {
			return fmt.Errorf("it lacks %q:\n%s", text, got)
		}
		return nil
	})
}
