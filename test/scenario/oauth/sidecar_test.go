package oauth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// sidecar contains the objects in the sample in OpenShift 3.9 Architecture, 4.1.4.3.1.1, with three
// differences. The Deployment uses the current API group, the route has a host, and the application
// is a different program.
const sidecar = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: proxy
  annotations:
    serviceaccounts.openshift.io/oauth-redirectreference.primary: '{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":"proxy"}}'
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: proxy}
spec: {host: %[1]s, to: {kind: Service, name: proxy}, tls: {termination: reencrypt}}
---
apiVersion: v1
kind: Service
metadata: {name: proxy, annotations: {service.alpha.openshift.io/serving-cert-secret-name: proxy-tls}}
spec: {ports: [{name: proxy, port: 443, targetPort: 8443}], selector: {app: proxy}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: proxy}
spec:
  replicas: 1
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec:
      serviceAccountName: proxy
      terminationGracePeriodSeconds: 1
      containers:
      - name: oauth-proxy
        image: openshift3/oauth-proxy
        imagePullPolicy: IfNotPresent
        ports: [{containerPort: 8443, name: public}]
        args: [--https-address=:8443, --provider=openshift, --openshift-service-account=proxy, --upstream=http://localhost:8080,
          --tls-cert=/etc/tls/private/tls.crt, --tls-key=/etc/tls/private/tls.key, --cookie-secret-file=/etc/cookie/secret,
          '--openshift-sar={"resource":"pods","namespace":"%[3]s","verb":"get"}']
        volumeMounts: [{mountPath: /etc/tls/private, name: proxy-tls}, {mountPath: /etc/cookie, name: proxy-cookie}]
        readinessProbe: {httpGet: {path: /oauth/healthz, port: 8443, scheme: HTTPS}, periodSeconds: 1}
      - name: app
        image: %[2]s
        command: [sh, -c, "echo I am the application >/tmp/index.html && exec httpd -f -p 127.0.0.1:8080 -h /tmp"]
      volumes: [{name: proxy-tls, secret: {secretName: proxy-tls}}, {name: proxy-cookie, secret: {secretName: proxy-cookie}}]
`

// TestSidecarLetsOnlyUsersReachApplication opens an application behind the OAuth proxy in a
// browser. Only users who are allowed to read pods in the project must be able to reach the
// application.
func TestSidecarLetsOnlyUsersReachApplication(t *testing.T) {
	s := at(t, kit.Shared(t))
	const host = "sidecar.example.com"
	s.OC("create", "secret", "generic", "proxy-cookie", "--from-literal=secret=SECRET")
	s.Apply(fmt.Sprintf(sidecar, host, kit.ToolsImage, s.Namespace))
	s.OnlyPod("app=proxy")
	browser := s.browser()
	transport := browser.Transport.(*http.Transport)
	// Do not verify the router's certificate, because it is the router's default certificate.
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == host+":443" {
			address = s.Address.String() + ":443"
		}
		return s.Dial(ctx, network, address)
	}
	page := "https://" + host + "/index.html"
	s.WaitFor("redirect of the application to the login", func(context.Context) error {
		got := s.do(browser, http.MethodGet, page, nil, nil)
		if target, err := got.Location(); err != nil || !strings.HasSuffix(target.Path, "/oauth/authorize") {
			return fmt.Errorf("%s: %s", got.Status, got.body)
		}
		return nil
	})
	if got := s.do(browser, http.MethodGet, "https://"+host+"/oauth/callback?code=forged&state=forged", nil, nil); got.StatusCode != http.StatusForbidden {
		t.Errorf("forged callback: %s", got.Status)
	}
	if got := s.logIn(browser, page, "developer", s.DeveloperPassword()); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, "no access") {
		t.Fatalf("after the login without permission: %s %s: %s", got.Request.URL, got.Status, got.body)
	}
	s.OC("policy", "add-role-to-user", "view", "developer")
	if got := s.logIn(browser, page, "developer", s.DeveloperPassword()); !strings.Contains(got.body, "I am the application") {
		t.Fatalf("after the login: %s %s: %s", got.Request.URL, got.Status, got.body)
	}
	if got := s.do(browser, http.MethodGet, page, nil, nil); !strings.Contains(got.body, "I am the application") {
		t.Errorf("in the session: %s: %s", got.Status, got.body)
	}
	if got := s.do(browser, http.MethodPost, "https://"+host+"/oauth/sign_out", url.Values{}, nil); got.StatusCode != http.StatusOK {
		t.Errorf("logout: %s", got.Status)
	}
	if got := s.do(browser, http.MethodGet, page, nil, nil); got.StatusCode != http.StatusFound {
		t.Errorf("after the logout: %s: %s", got.Status, got.body)
	}
}

// logIn requests a page as a user does: it follows redirects, logs in, and grants the requested
// scopes. It returns the last response.
func (s *server) logIn(browser *http.Client, page, user, password string) (got reply) {
	s.t.Helper()
	form := url.Values(nil)
	for range 20 {
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		got = s.do(browser, method, page, form, nil)
		form = nil
		if target, err := got.Location(); err == nil {
			page = target.String()
			continue
		}
		fields := got.fields()
		switch path := got.Request.URL.Path; {
		case strings.HasPrefix(path, "/login"):
			fields.Set("username", user)
			fields.Set("password", password)
		case path == "/oauth/approve":
			fields["scope"] = []string{"user:info", "user:check-access"}
			fields.Set("approve", "1")
		default:
			return got
		}
		page, form = "https://"+got.Request.URL.Host+got.Request.URL.Path, fields
	}
	return got
}
