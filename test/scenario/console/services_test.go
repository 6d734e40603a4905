package console

import (
	"fmt"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/slipway-platform/slipway/internal/osbtest"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestUserProvisionsServiceAndEditsBuild(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "orders"))
	s.application()
	broker := s.broker()
	s.OC("create", "imagestream", "app")
	if _, err := s.TryOCWithInput(image, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.Apply(webhookBuild)
	s.play("services.mjs", s.Namespace)
	instance := broker.Instance(s.OC("get", "serviceinstance/shop-db", "-o", "jsonpath={.spec.externalID}"))
	if got := fmt.Sprint(instance["plan_id"], " ", instance["parameters"]); got != "ID-db-large map[size:7]" {
		t.Errorf("the broker has the plan and the parameters %s", got)
	}
	const strategy = "{.spec.strategy.sourceStrategy"
	got := s.OC("get", "bc/site", "-o", "jsonpath="+strategy+".incremental} "+strategy+".env[*].name}="+strategy+".env[*].value} {.spec.triggers[*].type}")
	if got != "true MODE=fast Generic ImageChange" {
		t.Errorf("the build configuration has %s", got)
	}
	if got := s.OC("get", "servicebinding/shop-db", "-o", "jsonpath={.spec.parameters}"); got != `{"role":"reader"}` {
		t.Errorf("the binding has the parameters %s", got)
	}
	s.OC("delete", "servicebinding/shop-db")
	s.OC("delete", "serviceinstance/shop-db")
}

// broker registers a broker that offers a database service with a required parameter.
func (s *site) broker() *osbtest.Broker {
	s.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(s.Distant.String(), "0"))
	if err != nil {
		s.t.Fatal(err)
	}
	broker := osbtest.New()
	for _, plan := range broker.Catalog[0]["plans"].([]map[string]any) {
		described := map[string]any{"parameters": map[string]any{
			"type": "object", "required": []string{"size"}, "properties": map[string]any{"size": map[string]any{"type": "integer", "title": "Size in GiB"}},
		}}
		role := map[string]any{"type": "string", "title": "Role of the user", "enum": []string{"reader", "writer"}}
		binding := map[string]any{"create": map[string]any{"parameters": map[string]any{"type": "object", "properties": map[string]any{"role": role}}}}
		plan["schemas"] = map[string]any{"service_instance": map[string]any{"create": described, "update": described}, "service_binding": binding}
	}
	server := httptest.NewUnstartedServer(broker)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	s.t.Cleanup(server.Close)
	s.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: broker}, stringData: {username: catalog, password: %q}}`, osbtest.Password))
	s.Apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceBroker, metadata: {name: databases},
		spec: {url: %q, relistBehavior: Manual, authInfo: {basic: {secretRef: {namespace: %s, name: broker}}}}}`, server.URL, s.Namespace))
	s.t.Cleanup(func() { s.OC("delete", "clusterservicebroker/databases") })
	s.OC("wait", "clusterservicebroker/databases", "--for=condition=Ready", "--timeout=2m")
	return broker
}

// webhookBuild is a BuildConfig whose builds cannot be scheduled.
const webhookBuild = `
apiVersion: v1
kind: Secret
metadata: {name: hook}
stringData: {WebHookSecretKey: opens3same}
---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: site}
spec:
  nodeSelector: {none: none}
  source: {type: Git, git: {uri: "https://git.invalid/site.git"}}
  strategy: {type: Source, sourceStrategy: {from: {kind: ImageStreamTag, name: "app:latest"}}}
  output: {to: {kind: ImageStreamTag, name: "site:latest"}}
  triggers: [{type: Generic, generic: {secretReference: {name: hook}}}]
`
