package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestRouteCannotReachHost uses endpoints on the host that an administrator creates. They represent
// endpoints from before the API server rejected endpoints on hosts.
func TestRouteCannotReachHost(t *testing.T) {
	s := tenants(t)
	const port = "1936" // the router's health check listens on this port on all addresses
	route := func(user *kit.User, namespace, name, service string) string {
		host := name + "." + namespace + ".example.com"
		user.May("POST", kit.GroupPath("route.openshift.io", namespace, "routes"),
			fmt.Sprintf("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: %s}, spec: {host: %s, to: {kind: Service, name: %s}}}", name, host, service))
		return host
	}
	lead := func(namespace, name, address string) {
		s.Administrator().May("POST", kit.CorePath(namespace, "services"), "{apiVersion: v1, kind: Service, metadata: {name: "+name+"}, spec: {ports: [{port: 80, targetPort: "+port+"}]}}")
		s.Administrator().May("POST", kit.CorePath(namespace, "endpoints"), "{apiVersion: v1, kind: Endpoints, metadata: {name: "+name+"}, subsets: [{addresses: [{ip: "+address+"}], ports: [{port: "+port+"}]}]}")
	}
	lead(s.evil, "host", s.Address.String())
	foreign := route(s.mallory, s.evil, "stolen", "host")
	s.Administrator().May("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: openshift-attack}}")
	t.Cleanup(func() { s.OC("delete", "namespace", "openshift-attack", "--wait=false") })
	lead("openshift-attack", "host", s.Address.String())
	allowed := route(s.Administrator(), "openshift-attack", "allowed", "host")

	s.WaitFor("the route of the platform", func(context.Context) error {
		status, body, err := s.visit(allowed, "/healthz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the route responds with %d: %s", status, body)
		}
		return err
	})
	if status, body, err := s.visit(foreign, "/healthz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("the route of a tenant reaches the host: %d, %v: %s", status, err, body)
	}
}

// TestRouteCannotTakeHostOfPlatform requests the host names of the API server and the registry with
// a route and with an Ingress. Such a route could steal cookies, because browsers send a host's
// cookies to all of its ports.
func TestRouteCannotTakeHostOfPlatform(t *testing.T) {
	s := tenants(t)
	routes := kit.GroupPath("route.openshift.io", s.evil, "routes")
	refuse := func(verb, path, body string) {
		t.Helper()
		if text, err := s.mallory.Try(verb, path, body); err == nil || !strings.Contains(text, "the host belongs to the API server") {
			t.Errorf("%s %s %s: %v: %s", verb, path, body, err, text)
		}
	}
	manifest := "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web}, spec: {host: %s, to: {kind: Service, name: web}}}"
	for _, host := range []string{s.Address.String(), "kubernetes.default.svc", "docker-registry.default.svc"} {
		refuse("POST", routes, fmt.Sprintf(manifest, host))
	}
	own := "web." + s.evil + ".example.com"
	s.mallory.May("POST", routes, fmt.Sprintf(manifest, own))
	refuse("PATCH", routes+"/web", fmt.Sprintf(`{"spec":{"host":%q}}`, s.Address))

	// The controller creates the routes of an Ingress in the order of the rules.
	const rule = "{host: %s, http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}"
	ingresses := kit.GroupPath("networking.k8s.io", s.evil, "ingresses")
	s.mallory.May("POST", kit.CorePath(s.evil, "services"), "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	s.mallory.May("POST", ingresses, fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {rules: ["+rule+", "+rule+"]}}",
		"kubernetes.default.svc", own))
	s.WaitFor("the route of the other rule of the Ingress", func(context.Context) error {
		text, err := s.mallory.Try("GET", routes, "")
		if err == nil && !strings.Contains(text, `"path":"/a"`) {
			err = fmt.Errorf("the route does not exist: %s", text)
		}
		return err
	})
	if text := s.mallory.May("GET", routes, ""); strings.Contains(text, "kubernetes.default.svc") {
		t.Errorf("the Ingress of a tenant has the host of the API server: %s", text)
	}
}

// visit requests a route's page from the node's router.
func (s *stage) visit(host, path string) (status int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.Dial}}
	request, err := http.NewRequest(http.MethodGet, "http://"+s.Address.String()+path, nil)
	if err != nil {
		return 0, "", err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(content)), err
}
