package application

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// platform is a client that sends requests to the template service broker, as a service catalog
// does.
type platform struct {
	t      *testing.T
	client *http.Client
	root   string
	token  string
}

// newPlatform returns a client that uses a token for the service account created for a service
// catalog.
func newPlatform(t *testing.T, c *kit.Cluster) *platform {
	t.Helper()
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	token := c.In("openshift-template-service-broker").OC("serviceaccounts", "get-token", "templateservicebroker-client")
	return &platform{t, client, c.Config.Host + "/brokers/template.openshift.io/v2/", strings.TrimSpace(token)}
}

// send sends a request. If user is not empty, the request is on behalf of that user. If into is not
// nil, send decodes the response into it.
func (p *platform) send(user, method, path, body string, into any) (code int, text string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.root+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("X-Broker-API-Version", "2.13")
	request.Header.Set("Content-Type", "application/json")
	if user != "" {
		name := fmt.Sprintf(`{"username": %q, "groups": ["system:authenticated", "system:authenticated:oauth"]}`, user)
		request.Header.Set("X-Broker-API-Originating-Identity", "kubernetes "+base64.StdEncoding.EncodeToString([]byte(name)))
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			p.t.Fatalf("%s %s: %v\n%s", method, path, err, content)
		}
	}
	return response.StatusCode, string(content)
}

// expect sends a request and checks that the response has the given status code and contains the
// given text.
func (p *platform) expect(user, method, path, body string, code int, want string) {
	p.t.Helper()
	if got, text := p.send(user, method, path, body, nil); got != code || !strings.Contains(text, want) {
		p.t.Errorf("%s %s for %q: %d %s, want %d and %q", method, path, user, got, text, code, want)
	}
}

// wait polls until an operation has succeeded.
func (p *platform) wait(c *kit.Cluster, user, instance, operation string) {
	p.t.Helper()
	c.WaitFor(operation, func(context.Context) error {
		if _, text := p.send(user, http.MethodGet, instance+"/last_operation?operation="+operation, "", nil); !strings.Contains(text, `"succeeded"`) {
			return fmt.Errorf("the state of the operation is %s", text)
		}
		return nil
	})
}

// database is a template whose objects expose connection parameters.
const database = `{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: broker-database, annotations: {tags: "sql,database"}},
	parameters: [{name: NAME, required: true}, {name: PASSWORD, generate: expression, from: "[a-z]{12}"}],
	objects: [
		{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}", annotations: {
			template.openshift.io/expose-password: "{.data.password}", template.openshift.io/base64-expose-encoded: "{.data.password}"}}, stringData: {password: "${PASSWORD}"}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: "${NAME}", annotations: {template.openshift.io/expose-user: "{.data.user}"}}, data: {user: "${NAME}"}},
		{apiVersion: v1, kind: Service, metadata: {name: "${NAME}", annotations: {template.openshift.io/expose-uri: "sql://{.spec.clusterIP}:{.spec.ports[0].port}"}}, spec: {ports: [{port: 5432}]}},
		{apiVersion: v1, kind: Route, metadata: {name: "${NAME}", annotations: {template.openshift.io/expose-web: "http://{.spec.host}"}}, spec: {host: db.example.com, to: {name: "${NAME}"}}}]}`

func TestBrokerOffersTemplatesAsServices(t *testing.T) {
	c := kit.Shared(t)
	c.In("openshift").Apply(database)
	t.Cleanup(func() { c.In("openshift").OC("delete", "template/broker-database") })
	c.OC("policy", "add-role-to-user", "edit", "alice")
	c.OC("policy", "add-role-to-user", "view", "eve")
	p := newPlatform(t, c)

	stranger := *p
	stranger.token = strings.TrimSpace(c.OC("serviceaccounts", "get-token", "default"))
	stranger.expect("alice", http.MethodGet, "catalog", "", http.StatusForbidden, "")
	var catalog struct{ Services []struct{ ID, Name string } }
	p.send("", http.MethodGet, "catalog", "", &catalog)
	at := slices.IndexFunc(catalog.Services, func(s struct{ ID, Name string }) bool { return s.Name == "broker-database" })
	if at < 0 {
		t.Fatalf("the catalog has %v", catalog.Services)
	}

	const id, bindingID = "a7d1bcf4-4ba2-4a2e-b4c6-0d9a3a0f4e11", "5c2a1f8e-95bd-4f0c-8a0f-3e0a9e0c7b55"
	const instance, binding = "service_instances/" + id, "service_instances/" + id + "/service_bindings/" + bindingID
	send := func(parameters string) string {
		return fmt.Sprintf(`{"service_id": %q, "plan_id": %[1]q, "context": {"platform": "kubernetes", "namespace": %q}, "parameters": {%s}}`,
			catalog.Services[at].ID, c.Namespace, parameters)
	}
	const begin, remove = instance + "?accepts_incomplete=true", instance + "?accepts_incomplete=true&service_id=s&plan_id=p"
	good := send(`"NAME": "db", "customLabelParam": "team = red"`)
	p.expect("eve", http.MethodPut, begin, good, http.StatusForbidden, `user \"eve\" may not create templateinstances`)
	p.expect("", http.MethodPut, begin, good, http.StatusForbidden, "templateservicebroker-client")
	p.expect("alice", http.MethodPut, begin, send(`"NAEM": "db"`), http.StatusBadRequest, "parameters.NAEM")
	if result := c.OC("get", "brokertemplateinstances", "-o", "name"); result != "" {
		t.Errorf("a rejected request created %s", result)
	}
	p.expect("alice", http.MethodPut, begin, good, http.StatusAccepted, `"provisioning"`)
	p.wait(c, "alice", instance, "provisioning")
	p.expect("alice", http.MethodPut, begin, good, http.StatusOK, "")
	p.expect("alice", http.MethodPut, begin, send(`"NAME": "other"`), http.StatusConflict, "different parameters")
	p.expect("mallory", http.MethodGet, instance+"/last_operation?operation=provisioning", "", http.StatusForbidden, "may not get")
	waitOutput(c, "templateinstance/"+id, "{.spec.requester.username}", "alice")
	waitOutput(c, "route/db", "{.metadata.labels.team}", "red")

	bind := send("")
	p.expect("eve", http.MethodPut, binding, bind, http.StatusForbidden, "may not update")
	var resp struct{ Credentials map[string]string }
	if code, text := p.send("alice", http.MethodPut, binding, bind, &resp); code != http.StatusCreated {
		t.Errorf("bind: %d %s", code, text)
	}
	password, err := base64.StdEncoding.DecodeString(resp.Credentials["encoded"])
	address := c.OC("get", "svc/db", "-o", "jsonpath={.spec.clusterIP}")
	if got := resp.Credentials; err != nil || len(got) != 5 || len(password) != 12 || string(password) != got["password"] ||
		got["user"] != "db" || got["uri"] != "sql://"+address+":5432" || got["web"] != "http://db.example.com" {
		t.Errorf("credentials are %v (%v)", got, err)
	}
	p.expect("alice", http.MethodPut, binding, bind, http.StatusOK, resp.Credentials["password"])
	waitOutput(c, "brokertemplateinstance/"+id, "{.spec.bindingIDs}", `["`+bindingID+`"]`)
	p.expect("eve", http.MethodDelete, binding, "", http.StatusForbidden, "may not delete")
	p.expect("alice", http.MethodDelete, binding, "", http.StatusOK, "{}")
	p.expect("alice", http.MethodDelete, binding, "", http.StatusGone, "{}")

	p.expect("eve", http.MethodDelete, remove, "", http.StatusForbidden, "may not delete")
	p.expect("alice", http.MethodDelete, remove, "", http.StatusAccepted, `"deprovisioning"`)
	p.wait(c, "alice", instance, "deprovisioning")
	p.expect("alice", http.MethodDelete, remove, "", http.StatusGone, "{}")
	c.WaitFor("the instance to be deleted", func(context.Context) error {
		if rest := c.OC("get", "secret/db", "secret/"+id, "svc/db", "route/db", "brokertemplateinstance/"+id, "-o", "name", "--ignore-not-found"); rest != "" {
			return fmt.Errorf("there are %s", rest)
		}
		return nil
	})
}
