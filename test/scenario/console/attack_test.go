package console

import (
	"crypto/tls"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// browser sends requests as a browser does, but does not run scripts.
type browser struct {
	s      *site
	client *http.Client
}

func (s *site) browser(certificates ...tls.Certificate) *browser {
	s.t.Helper()
	return &browser{s, s.Browser(certificates...)}
}

// response is a response with its body.
type response struct {
	*http.Response
	body string
}

// send sends a request. pairs contains header names and values.
func (b *browser) send(method, path string, form url.Values, pairs ...string) response {
	b.s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(b.s.t.Context(), method, b.s.url+path, body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Set(pairs[i], pairs[i+1])
	}
	resp, err := b.client.Do(request)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return response{resp, string(content)}
}

var hidden = regexp.MustCompile(`name="(csrf|then)" value="([^"]*)"`)

// logIn logs in the developer through the OAuth server's forms. It returns the CSRF value for later
// requests.
func (b *browser) logIn() (csrf string) {
	b.s.t.Helper()
	page := b.send(http.MethodGet, "/console/login?then=/console/projects", nil)
	form := url.Values{"username": {"developer"}, "password": {b.s.DeveloperPassword()}}
	for _, field := range hidden.FindAllStringSubmatch(page.body, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	if end := b.send(http.MethodPost, "/login", form); end.Request.URL.Path != "/console/projects" || end.StatusCode != http.StatusOK {
		b.s.t.Fatalf("the login ends at %s: %s", end.Request.URL, end.Status)
	}
	return b.csrf()
}

func (b *browser) csrf() string {
	b.s.t.Helper()
	var session struct{ CSRF string }
	if err := json.Unmarshal([]byte(b.send(http.MethodGet, "/console/session", nil).body), &session); err != nil {
		b.s.t.Fatal(err)
	}
	return session.CSRF
}

// cookies returns the cookies for the console's host.
func (b *browser) cookies() []*http.Cookie {
	b.s.t.Helper()
	address, err := url.Parse(b.s.url)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return b.client.Jar.Cookies(address)
}

const whoami = "/console/proxy/apis/user.openshift.io/v1/users/~"

// upgrade returns the headers that a browser sends to open a WebSocket.
func upgrade(origin string) []string {
	return []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "c2xpcHdheSBjb25zb2xlIQ==", "Origin", origin}
}

func TestOtherSitesCannotUseSession(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	victim := s.browser()
	csrf := victim.logIn()
	if got := victim.send(http.MethodGet, whoami, nil, "X-CSRF-Token", csrf); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"developer"`) {
		t.Fatalf("a request of the console itself: %s %s", got.Status, got.body)
	}
	other := s.browser()
	otherCSRF := other.logIn()
	const evil = "https://evil.example.com"
	const pods = "/console/proxy/api/v1/namespaces/default/pods?watch=1"
	for name, got := range map[string]response{
		"a link":                        victim.send(http.MethodGet, whoami, nil),
		"a form":                        victim.send(http.MethodPost, "/console/proxy/api/v1/namespaces", url.Values{"a": {"b"}}, "Origin", evil),
		"the value of another session":  victim.send(http.MethodGet, whoami, nil, "X-CSRF-Token", otherCSRF),
		"another origin":                victim.send(http.MethodGet, whoami, nil, "X-CSRF-Token", csrf, "Origin", evil),
		"a preflight":                   victim.send(http.MethodOptions, whoami, nil, "Origin", evil, "Access-Control-Request-Method", "GET"),
		"a WebSocket of another origin": victim.send(http.MethodGet, pods, nil, upgrade(evil)...),
		"a WebSocket without an origin": victim.send(http.MethodGet, pods, nil, upgrade("")...),
		"a link to the logout":          victim.send(http.MethodGet, "/console/logout", nil),
		"a form to the logout":          victim.send(http.MethodPost, "/console/logout", url.Values{}, "Origin", evil),
	} {
		if got.StatusCode != http.StatusForbidden && got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %s, %v", name, got.Status, got.Header)
		}
	}
	if got := victim.send(http.MethodGet, whoami, nil, "X-CSRF-Token", csrf); got.StatusCode != http.StatusOK {
		t.Errorf("the session has ended: %s", got.Status)
	}
}

func TestStolenCookieHasNoTokenAndEndsWithLogout(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	victim, thief := s.browser(), s.browser()
	csrf := victim.logIn()
	address, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range victim.cookies() {
		if strings.Contains(cookie.Value, "sha256~") || strings.Contains(cookie.Value, "developer") {
			t.Errorf("cookie %s is readable: %s", cookie.Name, cookie.Value)
		}
		cookie.Secure, cookie.Path = true, "/"
		thief.client.Jar.SetCookies(address, []*http.Cookie{cookie})
	}
	for path, want := range map[string]int{"/apis/user.openshift.io/v1/users/~": http.StatusForbidden, "/api/v1/namespaces": http.StatusForbidden} {
		if got := thief.send(http.MethodGet, path, nil); got.StatusCode != want {
			t.Errorf("the API accepts the cookie at %s: %s", path, got.Status)
		}
	}
	if got := thief.send(http.MethodGet, whoami, nil, "X-CSRF-Token", csrf); got.StatusCode != http.StatusOK {
		t.Fatalf("the copy of the session does not work before the logout: %s", got.Status)
	}
	if got := victim.send(http.MethodPost, "/console/logout", url.Values{}, "X-CSRF-Token", csrf); got.StatusCode != http.StatusNoContent {
		t.Fatalf("logout: %s %s", got.Status, got.body)
	}
	if got := thief.send(http.MethodGet, whoami, nil, "X-CSRF-Token", csrf); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("the copy still works after the logout: %s", got.Status)
	}
	if got := victim.send(http.MethodGet, "/console/login?then=/console/", nil); got.Request.URL.Path != "/login" {
		t.Errorf("after the logout, the next login requires no password: it ends at %s", got.Request.URL)
	}
}

func TestTokenTakesPrecedenceOverCertificateOfBrowser(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	certificate, err := tls.X509KeyPair(s.Config.CertData, s.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser(certificate)
	csrf := b.logIn()
	if got := b.send(http.MethodGet, "/api/v1/nodes", nil); got.StatusCode != http.StatusOK {
		t.Fatalf("the certificate is not the administrator's: %s", got.Status)
	}
	for name, pairs := range map[string][]string{
		"with the certificate":        {"X-CSRF-Token", csrf},
		"with another user's headers": {"X-CSRF-Token", csrf, "Impersonate-User", "system:admin", "Impersonate-Group", "system:masters", "X-Remote-User", "system:admin"},
	} {
		if got := b.send(http.MethodGet, "/console/proxy/api/v1/nodes", nil, pairs...); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, `\"developer\"`) {
			t.Errorf("%s: %s %s", name, got.Status, got.body)
		}
	}
	second := s.browser()
	secondCSRF := second.logIn()
	address, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	stale := second.cookies()
	second.send(http.MethodPost, "/console/logout", url.Values{}, "X-CSRF-Token", secondCSRF)
	for _, cookie := range stale {
		cookie.Secure, cookie.Path = true, "/"
		b.client.Jar.SetCookies(address, []*http.Cookie{cookie})
	}
	if got := b.send(http.MethodGet, "/console/proxy/api/v1/nodes", nil, "X-CSRF-Token", secondCSRF); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a deleted token, the request has the rights of the certificate: %s", got.Status)
	}
}

func TestProxyReachesOnlyTheAPI(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	b := s.browser()
	csrf := b.logIn()
	for _, path := range []string{
		"/oauth/token", "/login", "/metrics", "/console/session", "/api/../oauth/token/request", "/api/%2e%2e/metrics", "/api/..%2fmetrics", "//api", "",
	} {
		if got := b.send(http.MethodGet, "/console/proxy"+path, nil, "X-CSRF-Token", csrf); got.StatusCode != http.StatusNotFound || !strings.Contains(got.body, "does not serve this path") {
			t.Errorf("%q: %s %s", path, got.Status, got.body)
		}
	}
}

func TestPagesAllowNoForeignCode(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	got := s.browser().send(http.MethodGet, "/console/project/a/pods", nil, "Accept", "text/html")
	policy := got.Header.Get("Content-Security-Policy")
	if got.StatusCode != http.StatusOK || !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s, policy %q", got.Status, policy)
	}
	if strings.Contains(got.body, "<style") || regexp.MustCompile(`<script(?:>| [^>]*>)[^<]`).MatchString(got.body) {
		t.Errorf("the page contains inline code:\n%s", got.body)
	}
}

// trap contains a template, pods and a build that an attacker creates for other users to open.
const trap = `
apiVersion: template.openshift.io/v1
kind: Template
metadata:
  name: trap
  annotations:
    openshift.io/display-name: Apache HTTP Server
    openshift.io/documentation-url: javascript:alert(1)
    description: "<img src=x onerror=alert(1)> [help](javascript:alert(1))"
parameters: [{name: PLACE, value: NAMESPACE}]
objects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: planted, namespace: "${PLACE}"}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: NAMESPACE-trap}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: trap}
spec:
  replicas: 0
  selector: {matchLabels: {app: trap}}
  template:
    metadata: {labels: {app: trap}}
    spec:
      volumes: [{name: host, hostPath: {path: /}}]
      containers:
      - {name: web, image: none}
      - {name: side, image: none, securityContext: {privileged: true}, volumeMounts: [{name: host, mountPath: /host}]}
---
apiVersion: build.openshift.io/v1
kind: Build
metadata:
  name: forged
  annotations: {openshift.io/jenkins-status-json: '{"stages": [{"name": "First", "status": "__proto__"}, {"name": "Second", "status": "constructor"}]}'}
spec: {strategy: {type: JenkinsPipeline, jenkinsPipelineStrategy: {jenkinsfile: none}}}
status: {phase: Cancelled}
`

func TestPagesDoNotGiveRightsToOtherUsers(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.MustSlipway("oc", "adm", "policy", "add-cluster-role-to-user", "cluster-admin", "developer")
	t.Cleanup(func() {
		s.MustSlipway("oc", "adm", "policy", "remove-cluster-role-from-user", "cluster-admin", "developer")
	})
	s.Apply(strings.ReplaceAll(trap, "NAMESPACE", s.Namespace))
	project := s.newProject("attacked")
	s.MustSlipway("oc", "adm", "new-project", project)
	s.play("trap.mjs", s.Namespace, project)
	for _, created := range []string{"clusterrolebinding/" + s.Namespace + "-trap", "configmap/planted", "pod/trap-debug"} {
		if got := s.OC("get", created, "--ignore-not-found", "-o", "name"); got != "" {
			t.Errorf("the console has created %s", got)
		}
	}
}
