package router

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, labels: {team: red}}
spec:
  %[1]s
  tls: [{hosts: [safe.ingress.example.com], secretName: front-tls}]
  rules:
  - host: %[2]s
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: entry, port: {name: web}}}}]}
  - host: safe.ingress.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: entry, port: {number: 80}}}}]}
`

// more contains Ingresses with an exact path, with a wildcard host, and with a default backend that
// has no host.
const more = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: more}
spec:
  rules:
  - host: exact.ingress.example.com
    http: {paths: [{path: /index.html, pathType: Exact, backend: {service: {name: entry, port: {number: 80}}}}]}
  - host: "*.wild.ingress.example.com"
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: entry, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: rest}
spec: {defaultBackend: {service: {name: entry, port: {number: 80}}}}
`

func TestIngressObjectsAreServed(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "entry", "by ingress"))
	c.Apply(fmt.Sprintf(ingress, "", "plain.ingress.example.com"))
	c.Apply(more)
	serves(t, c, 80, "plain.ingress.example.com", "by ingress")
	if status, _ := fetch(c, 443, "safe.ingress.example.com"); status != http.StatusServiceUnavailable {
		t.Errorf("a host without its secret returns %d", status)
	}
	pair := certtest.New(t).Issue(t, "safe", "safe.ingress.example.com")
	c.OC("create", "secret", "tls", "front-tls", "--cert="+pair.CertFile, "--key="+pair.KeyFile)
	serves(t, c, 443, "safe.ingress.example.com", "by ingress")
	eventually.True(t, "its certificate", func() bool { // takes effect at the next reload
		connection, err := c.Dial(t.Context(), "tcp", "127.0.0.1:443")
		if err != nil {
			return false
		}
		defer connection.Close()
		secure := tls.Client(connection, &tls.Config{ServerName: "safe.ingress.example.com", InsecureSkipVerify: true})
		return secure.Handshake() == nil && secure.ConnectionState().PeerCertificates[0].Equal(pair.Certificate)
	})
	eventually.Equal(t, "status of the Ingress", func() string {
		ingress, err := c.Client.NetworkingV1().Ingresses(c.Namespace).Get(context.Background(), "front", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		addresses, _ := json.Marshal(ingress.Status.LoadBalancer.Ingress)
		return string(addresses)
	}, fmt.Sprintf(`[{"ip":%q}]`, c.Address))

	serves(t, c, 80, "rest-"+c.Namespace+".apps.localhost", "by ingress")
	for path, want := range map[string]int{"/index.html": http.StatusOK, "/index.html/": http.StatusServiceUnavailable, "/": http.StatusServiceUnavailable} {
		eventually.Equal(t, "response to "+path, func() int {
			status, _, _ := ask(c, "127.0.0.1:80", path, toHost("exact.ingress.example.com"))
			return status
		}, want)
	}
	eventually.Equal(t, "the router's status for the wildcard, which it does not allow", func() string {
		return c.OC("get", "routes", "-o", `jsonpath={.items[?(@.spec.host=="wildcard.wild.ingress.example.com")].status.ingress[0].conditions[0].reason}`)
	}, "RouteNotAdmitted")
	if class := c.OC("get", "ingress", "rest", "-o", "jsonpath={.spec.ingressClassName}"); class != "openshift-default" {
		t.Errorf("an Ingress without a class gets %q", class)
	}
	c.OC("delete", "ingress", "more", "rest")

	routes := func() string { return c.OC("get", "routes", "-o", "jsonpath={.items[*].spec.host}") }
	c.Apply(fmt.Sprintf(ingress, "ingressClassName: openshift-default", "other.ingress.example.com"))
	serves(t, c, 80, "other.ingress.example.com", "by ingress")
	eventually.True(t, "removal of the previous host", func() bool { return !strings.Contains(routes(), "plain.ingress") })
	c.Apply(fmt.Sprintf(ingress, "ingressClassName: third-party", "other.ingress.example.com"))
	eventually.Equal(t, "removal of the routes of an Ingress of another class", routes, "")
	c.Apply(fmt.Sprintf(ingress, "", "other.ingress.example.com"))
	serves(t, c, 80, "other.ingress.example.com", "by ingress")
	c.OC("delete", "ingress", "front")
	eventually.Equal(t, "removal of the routes of a deleted Ingress", routes, "")
}
