package catalog

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// These are the credentials of the queue broker.
const (
	queueUser     = "queues"
	queuePassword = "p4ssword-of-queues"
)

// queueBroker is a process that runs testdata/queuebroker.py.
type queueBroker struct {
	t         *testing.T
	address   string
	port      int
	authority *certtest.Authority
	pair      certtest.Pair
	database  string
	process   *exec.Cmd
}

// queueState is the state that the broker reports to the tests.
type queueState struct {
	Resources  []queueResource
	Requests   []queueRequest
	Violations []string
}

// queueResource is an instance, or a binding for the instance with the ID Parent.
type queueResource struct {
	ID, Parent string
	Body       map[string]any
}

type queueRequest struct {
	Method, ID, User string
	Status           int
}

// startQueueBroker starts the broker at an address outside the cluster.
func startQueueBroker(t *testing.T, c *kit.Cluster) *queueBroker {
	t.Helper()
	address := c.Distant.String()
	authority := certtest.New(t)
	b := &queueBroker{
		t: t, address: address, authority: authority, pair: authority.Issue(t, "queues", address),
		database: filepath.Join(t.TempDir(), "queues.db"),
	}
	b.start()
	t.Cleanup(b.kill)
	return b
}

// start starts the broker's process. If the process has been started before, it listens on the same
// port.
func (b *queueBroker) start() {
	b.t.Helper()
	b.process = exec.Command("/usr/bin/python3", "testdata/queuebroker.py", b.address, strconv.Itoa(b.port), b.pair.CertFile, b.pair.KeyFile, b.database)
	b.process.Env = append(os.Environ(), "BROKER_USER="+queueUser, "BROKER_PASSWORD="+queuePassword)
	b.process.Stderr = b.t.Output()
	out, err := b.process.StdoutPipe()
	if err == nil {
		err = b.process.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		b.port, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		b.t.Fatalf("the broker reports no port: %v", err)
	}
}

func (b *queueBroker) kill() {
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
}

func (b *queueBroker) url() string {
	return "https://" + net.JoinHostPort(b.address, strconv.Itoa(b.port))
}

// call sends a request to one of the broker's test paths.
func (b *queueBroker) call(method, path, body string, into any) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth(queueUser, queuePassword)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: b.authority.Pool()}}}
	response, err := client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %s %s %v", method, path, response.Status, content, err)
	}
}

// lose makes the broker execute the next request with the given method and kind, and then close the
// connection without a response.
func (b *queueBroker) lose(method, kind string) {
	b.t.Helper()
	b.call(http.MethodPost, "/test/lose", fmt.Sprintf(`{"method": %q, "kind": %q}`, method, kind), &struct{}{})
}

func (b *queueBroker) state() (state queueState) {
	b.t.Helper()
	b.call(http.MethodGet, "/test/state", "", &state)
	return state
}

// changes returns the methods and status codes of the requests that changed the instance or binding
// with the given ID.
func (s queueState) changes(id string) (list []string) {
	for _, request := range s.Requests {
		if request.ID == id && request.Method != http.MethodGet {
			list = append(list, fmt.Sprintf("%s %d", request.Method, request.Status))
		}
	}
	return list
}

// has reports whether the broker has an instance or binding with the given ID.
func (s queueState) has(id string) bool {
	return slices.ContainsFunc(s.Resources, func(resource queueResource) bool { return resource.ID == id })
}

func TestBrokerInPythonWorks(t *testing.T) {
	c := kit.Shared(t)
	b := startQueueBroker(t, c)
	b.register(c)
	c.OC("policy", "add-role-to-user", "edit", "alice")
	b.checkLifecycle(t, c)
	b.checkLostResponses(t, c)
	b.checkFailure(t, c)
	b.checkKill(t, c)
	state := b.state()
	if len(state.Resources) > 0 {
		t.Errorf("the broker still has %+v", state.Resources)
	}
	if len(state.Violations) > 0 {
		t.Errorf("the catalog violates rules of the specification:\n%s", strings.Join(state.Violations, "\n"))
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(queuePassword), 0o600); err != nil {
		t.Fatal(err)
	}
	result := c.Slipway("catalog", "check", b.url(), "--username="+queueUser, "--password-file="+password, "--ca-file="+b.authority.File, "--service=queue")
	if result.Code != 0 {
		t.Errorf("the check of the broker: %s%s", result.Stdout, result.Stderr)
	}
}

// register registers the broker. It initially uses a wrong password and no CA certificate.
func (b *queueBroker) register(c *kit.Cluster) {
	b.t.Helper()
	secret := func(password string) {
		c.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: queues}, type: kubernetes.io/basic-auth, stringData: {username: %s, password: %q}}`, queueUser, password))
	}
	const broker = "clusterservicebroker/queues"
	refused := func(want string) {
		b.t.Helper()
		c.WaitFor("rejection by the broker", func(ctx context.Context) error {
			if got := c.OC("get", broker, "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, want) {
				return fmt.Errorf("the conditions are %s, want %q", got, want)
			}
			return nil
		})
	}
	secret("wrong")
	c.Apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceBroker, metadata: {name: queues},
		spec: {url: %q, relistBehavior: Manual, authInfo: {basic: {secretRef: {namespace: %s, name: queues}}}}}`, b.url(), c.Namespace))
	b.t.Cleanup(func() { c.OC("delete", broker) })
	refused("certificate signed by unknown authority")
	authority, err := os.ReadFile(b.authority.File)
	if err != nil {
		b.t.Fatal(err)
	}
	c.OC("patch", broker, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"caBundle": %q}}`, base64.StdEncoding.EncodeToString(authority)))
	refused("wrong credentials")
	secret(queuePassword)
	c.OC("patch", broker, "--type=merge", "-p", `{"spec": {"relistRequests": 1}}`)
	wait(c, broker, "{.status.lastConditionState}", "Ready")
}

// order orders a queue as Alice and returns its ID.
func (b *queueBroker) order(t *testing.T, c *kit.Cluster, name, parameters string) string {
	t.Helper()
	b.apply(t, c, fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: %s}, spec: {
		clusterServiceClassExternalName: queue, clusterServicePlanExternalName: shared, parameters: %s}}`, name, parameters))
	return c.OC("get", "serviceinstance/"+name, "-o", "jsonpath={.spec.externalID}")
}

// bind binds a queue as Alice and returns the binding's ID.
func (b *queueBroker) bind(t *testing.T, c *kit.Cluster, name string) string {
	t.Helper()
	b.apply(t, c, fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: %s}, spec: {instanceRef: {name: %[1]s}}}`, name))
	return c.OC("get", "servicebinding/"+name, "-o", "jsonpath={.spec.externalID}")
}

func (b *queueBroker) apply(t *testing.T, c *kit.Cluster, manifest string) {
	t.Helper()
	if out, err := c.TryOCWithInput(manifest, "--as=alice", "--as-group=system:authenticated", "apply", "-f", "-"); err != nil {
		t.Fatalf("%s %v", out, err)
	}
}

func (b *queueBroker) checkLifecycle(t *testing.T, c *kit.Cluster) {
	id := b.order(t, c, "jobs", "{depth: 3}")
	wait(c, "serviceinstance/jobs", "{.status.lastConditionState} {.status.dashboardURL}", "Ready https://queues.example.com/"+id)
	binding := b.bind(t, c, "jobs")
	wait(c, "servicebinding/jobs", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/jobs", "--to=-"); !strings.Contains(got, "amqp://queues.example.com/"+id) || !strings.Contains(got, "token-of-"+binding) {
		t.Errorf("the credentials are %s", got)
	}
	c.OC("patch", "serviceinstance/jobs", "--type=merge", "-p", `{"spec": {"clusterServicePlanExternalName": "dedicated", "parameters": {"depth": 5}}}`)
	wait(c, "serviceinstance/jobs", "{.status.externalProperties.clusterServicePlanExternalName} {.status.lastConditionState}", "dedicated Ready")
	state := b.state()
	for _, resource := range state.Resources {
		if got := fmt.Sprint(resource.Body["plan_id"], " ", resource.Body["parameters"]); resource.ID == id && got != "7b0f2a1c-dedicated map[depth:5]" {
			t.Errorf("the broker has %s", got)
		}
	}
	if user := state.Requests[0].User; user != "alice" {
		t.Errorf("the originator is %q", user)
	}
	c.OC("delete", "servicebinding/jobs")
	c.OC("delete", "serviceinstance/jobs")
	state = b.state()
	if got, want := state.changes(id), []string{"PUT 202", "PATCH 202", "DELETE 202"}; !slices.Equal(got, want) {
		t.Errorf("the requests for the instance are %q, want %q", got, want)
	}
	if got, want := state.changes(binding), []string{"PUT 202", "DELETE 202"}; !slices.Equal(got, want) {
		t.Errorf("the requests for the binding are %q, want %q", got, want)
	}
	if state.has(id) || state.has(binding) {
		t.Errorf("the broker still has %+v", state.Resources)
	}
}

// checkLostResponses checks that an order succeeds although responses are lost. An object that a
// request might have created must be deleted before the request is repeated.
func (b *queueBroker) checkLostResponses(t *testing.T, c *kit.Cluster) {
	b.lose(http.MethodPut, "instances")
	id := b.order(t, c, "lost", "{}")
	wait(c, "serviceinstance/lost", "{.status.lastConditionState}", "Ready")
	b.lose(http.MethodPut, "bindings")
	binding := b.bind(t, c, "lost")
	wait(c, "servicebinding/lost", "{.status.lastConditionState}", "Ready")
	b.lose(http.MethodDelete, "bindings")
	c.OC("delete", "servicebinding/lost")
	b.lose(http.MethodDelete, "instances")
	c.OC("delete", "serviceinstance/lost")
	state := b.state()
	for _, id := range []string{id, binding} {
		// The controller repeats the last request to delete, because its response was lost.
		if got, want := state.changes(id), []string{"PUT 202", "DELETE 202", "PUT 202", "DELETE 202", "DELETE 202"}; !slices.Equal(got, want) {
			t.Errorf("the requests are %q, want %q", got, want)
		}
	}
}

// checkFailure checks that the remaining resources of a failed provision request are deleted.
func (b *queueBroker) checkFailure(t *testing.T, c *kit.Cluster) {
	id := b.order(t, c, "full", "{fail: true}")
	wait(c, "serviceinstance/full", "{.status.lastConditionState} {.status.orphanMitigationInProgress} {.status.deprovisionStatus}", "Failed false Succeeded")
	if got := c.OC("get", "serviceinstance/full", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, "no room for the queue") {
		t.Errorf("the conditions are %s", got)
	}
	if b.state().has(id) {
		t.Error("the broker still has the remains of the failed order")
	}
	c.OC("delete", "serviceinstance/full")
}

// checkKill kills the broker while it creates an instance.
func (b *queueBroker) checkKill(t *testing.T, c *kit.Cluster) {
	b.call(http.MethodPost, "/test/hold", "", &struct{}{})
	id := b.order(t, c, "killed", "{}")
	wait(c, "serviceinstance/killed", "{.status.asyncOpInProgress}", "true")
	b.kill()
	c.WaitFor("failed polls", func(context.Context) error {
		if got := c.OC("get", "serviceinstance/killed", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, "connection refused") {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	b.start()
	b.call(http.MethodPost, "/test/release", "", &struct{}{})
	wait(c, "serviceinstance/killed", "{.status.lastConditionState}", "Ready")
	c.OC("delete", "serviceinstance/killed")
	if got, want := b.state().changes(id), []string{"PUT 202", "DELETE 202"}; !slices.Equal(got, want) {
		t.Errorf("the requests are %q, want %q", got, want)
	}
}
