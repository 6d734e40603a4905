package catalog

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/osbtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// register registers a broker and waits until its catalog has been fetched. Only one broker can be
// registered at a time, because all tests' brokers offer the same IDs.
func register(t *testing.T, c *kit.Cluster, url, name string) {
	t.Helper()
	c.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: broker-%s}, stringData: {username: catalog, password: %q}}`, name, osbtest.Password))
	c.Apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceBroker, metadata: {name: %s},
		spec: {url: %q, relistBehavior: Manual, authInfo: {basic: {secretRef: {namespace: %s, name: broker-%[1]s}}}}}`, name, url, c.Namespace))
	t.Cleanup(func() { c.OC("delete", "clusterservicebroker/"+name) })
	wait(c, "clusterservicebroker/"+name, "{.status.lastConditionState}", "Ready")
}

// wait waits until a field of an object has the expected value.
func wait(c *kit.Cluster, object, path, want string) {
	c.WaitFor(fmt.Sprintf("%s of %s to be %q", path, object, want), func(context.Context) error {
		got, err := c.TryOC("get", object, "-o", "jsonpath="+path)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// waitDeleted waits until an object no longer exists.
func waitDeleted(c *kit.Cluster, object string) {
	c.WaitFor(object+" to be deleted", func(context.Context) error {
		if out, err := c.TryOC("get", object, "-o", "name", "--ignore-not-found"); err != nil || out != "" {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
}

const application = `{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: shop}, spec: {replicas: 1, selector: {app: shop},
	template: {metadata: {labels: {app: shop}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: shop, image: "` + kit.ToolsImage + `",
		command: [sh, -c, "echo $URI; sleep 1000000"], env: [{name: URI, valueFrom: {secretKeyRef: {name: db-credentials, key: url}}}]}]}}}}`

func TestServiceIsProvisionedBoundAndDeprovisioned(t *testing.T) {
	c := kit.Shared(t)
	b, url := startBroker(t, c)
	register(t, c, url, "flow")
	c.OC("policy", "add-role-to-user", "edit", "alice")
	c.OC("policy", "add-role-to-user", "edit", "bob")
	c.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: wishes}, stringData: {json: '{"owner": "p4rameter"}'}}`)
	if out := c.OC("--as=alice", "--as-group=system:authenticated", "get", "clusterserviceclasses", "--field-selector=spec.externalName=db"); !strings.Contains(out, "flow") {
		t.Errorf("the class is not listed: %s", out)
	}
	apply := func(manifest string) {
		t.Helper()
		if out, err := c.TryOCWithInput(manifest, "--as=alice", "--as-group=system:authenticated", "apply", "-f", "-"); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: db}, spec: {
		clusterServiceClassExternalName: db, clusterServicePlanExternalName: small, parameters: {size: 1}, parametersFrom: [{secretKeyRef: {name: wishes, key: json}}]}}`)
	wait(c, "serviceinstance/db", "{.status.lastConditionState} {.status.dashboardURL}",
		"Ready http://dashboard.example.com/"+c.OC("get", "serviceinstance/db", "-o", "jsonpath={.spec.externalID}"))
	id := c.OC("get", "serviceinstance/db", "-o", "jsonpath={.spec.externalID}")
	order := b.Instance(id)
	if got := fmt.Sprint(order["parameters"]); got != "map[owner:p4rameter size:1]" {
		t.Errorf("parameters are %s", got)
	}
	if profile, _ := order["context"].(map[string]any); profile["platform"] != "kubernetes" || profile["namespace"] != c.Namespace || profile["clusterid"] == "" {
		t.Errorf("context is %v", order["context"])
	}
	if users := b.Originators(); !slices.Contains(users, "alice") {
		t.Errorf("the originators are %q", users)
	}
	if out := c.OC("get", "serviceinstance/db", "-o", "yaml"); strings.Contains(out, "p4rameter") {
		t.Errorf("the object contains a secret: %s", out)
	}
	if out := c.OC("get", "serviceinstances"); !strings.Contains(out, "ClusterServiceClass/db") || !strings.Contains(out, "Ready") {
		t.Errorf("the table is %s", out)
	}

	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: db}, spec: {instanceRef: {name: db}, secretName: db-credentials,
		secretTransforms: [{renameKey: {from: uri, to: url}}, {removeKey: {key: port}}, {addKey: {key: info, jsonPathExpression: "{.username}@{.port}"}}]}}`)
	wait(c, "servicebinding/db", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/db-credentials", "--to=-"); !strings.Contains(got, "sql://db/"+id) || !strings.Contains(got, "admin@5432") || strings.Contains(got, "\n5432\n") {
		t.Errorf("the credentials are %s", got)
	}
	c.Apply(application)
	c.WaitFor("output of the application", func(context.Context) error {
		if out, err := c.TryOC("logs", "dc/shop"); err != nil || !strings.Contains(out, "sql://db/"+id) {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
	c.OC("patch", "serviceinstance/db", "--type=merge", "-p", `{"spec": {"clusterServicePlanExternalName": "large", "parameters": {"size": 2}}}`)
	wait(c, "serviceinstance/db", "{.status.externalProperties.clusterServicePlanExternalName} {.status.lastConditionState}", "large Ready")
	if order := b.Instance(id); order["plan_id"] != "ID-db-large" {
		t.Errorf("after the update, the instance is %v", order)
	}

	log := c.MustSlipway("logs", "control-plane", "--tail=-1")
	audit, err := os.ReadFile(c.Path("log", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"p4rameter", osbtest.Password, "pw-"} {
		if strings.Contains(log, secret) || strings.Contains(string(audit), secret) {
			t.Errorf("the log of the control plane or the audit log contains %q", secret)
		}
	}

	c.OC("--as=bob", "--as-group=system:authenticated", "delete", "serviceinstance/db", "--wait=false")
	wait(c, "serviceinstance/db", "{.status.lastConditionState}", "DeprovisionBlockedByExistingCredentials")
	c.OC("delete", "servicebinding/db")
	waitDeleted(c, "secret/db-credentials")
	waitDeleted(c, "serviceinstance/db")
	if orders, deletions := b.Count(id); orders != 1 || deletions != 1 {
		t.Errorf("the broker created %d instances and deleted %d", orders, deletions)
	}
	if users := b.Originators(); users[len(users)-1] != "bob" {
		t.Errorf("the originators are %q", users)
	}
}

func TestOperationsContinueAfterRestartOfControlPlane(t *testing.T) {
	c := kit.Shared(t)
	b, url := startBroker(t, c)
	register(t, c, url, "kill")
	b.Set(func() { b.Busy = true })
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: cloud}, spec: {clusterServiceClassExternalName: cloud}}`)
	wait(c, "serviceinstance/cloud", "{.status.asyncOpInProgress} {.status.lastOperation}", "true create")
	c.Kill("control-plane")
	b.Set(func() { b.Busy = false })
	wait(c, "serviceinstance/cloud", "{.status.lastConditionState}", "Ready")
	id := c.OC("get", "serviceinstance/cloud", "-o", "jsonpath={.spec.externalID}")

	// Kill the control plane before it receives the response to the bind request.
	killed := make(chan struct{})
	var once bool
	b.Set(func() {
		b.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if once || r.Method != http.MethodPut {
				return false
			}
			once = true
			close(killed)
			panic(http.ErrAbortHandler)
		}
	})
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: cloud}, spec: {instanceRef: {name: cloud}}}`)
	select {
	case <-killed:
		c.Kill("control-plane")
	case <-t.Context().Done():
		t.Fatal("the broker has received no request for the binding")
	}
	wait(c, "servicebinding/cloud", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/cloud", "--to=-", "--keys=username"); !strings.Contains(got, "admin") {
		t.Errorf("the credentials are %s", got)
	}
	c.OC("delete", "servicebinding/cloud")
	c.OC("delete", "serviceinstance/cloud")
	if orders, deletions := b.Count(id); orders != 1 || deletions != 1 {
		t.Errorf("the broker created %d instances and deleted %d", orders, deletions)
	}
}

func TestInstanceOfUnreachableBrokerCanBeDeleted(t *testing.T) {
	c := kit.Shared(t)
	b, url := startBroker(t, c)
	register(t, c, url, "lost")
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: lost}, spec: {clusterServiceClassExternalName: db, clusterServicePlanExternalName: small}}`)
	wait(c, "serviceinstance/lost", "{.status.lastConditionState}", "Ready")
	b.Set(func() {
		b.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		}
	})
	c.OC("delete", "serviceinstance/lost", "--wait=false")
	wait(c, "serviceinstance/lost", "{.status.conditions[?(@.type=='Ready')].reason}", "DeprovisionCallFailed")
	if line, err := c.StartOCForErrors("annotate", "serviceinstance/lost", "servicecatalog.k8s.io/abandon=true").ReadString('\n'); !strings.HasPrefix(line, "Warning: ") {
		t.Errorf("oc annotate warns: %q, %v", line, err)
	}
	waitDeleted(c, "serviceinstance/lost")
	c.WaitFor("event", func(context.Context) error {
		if out := c.OC("get", "events"); !strings.Contains(out, "Abandoned") {
			return fmt.Errorf("the events are %s", out)
		}
		return nil
	})
}

func TestTemplatesAreOfferedAsServices(t *testing.T) {
	c := kit.Shared(t)
	c.In("openshift").Apply(`{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: catalog-template}, parameters: [{name: NAME, required: true}],
		objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}", annotations: {template.openshift.io/expose-password: "{.data.password}"}}, stringData: {password: from-template}}]}`)
	t.Cleanup(func() { c.In("openshift").OC("delete", "template/catalog-template") })
	c.OC("patch", "clusterservicebroker/template-service-broker", "--type=merge", "-p", `{"spec": {"relistRequests": 1}}`)
	c.WaitFor("class of the template", func(context.Context) error {
		if out := c.OC("get", "clusterserviceclasses", "--field-selector=spec.externalName=catalog-template", "-o", "name"); out == "" {
			return fmt.Errorf("the class does not exist")
		}
		return nil
	})
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: made}, spec: {clusterServiceClassExternalName: catalog-template, parameters: {NAME: made}}}`)
	wait(c, "serviceinstance/made", "{.status.lastConditionState}", "Ready")
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: made-binding}, spec: {instanceRef: {name: made}}}`)
	wait(c, "servicebinding/made-binding", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/made-binding", "--to=-", "--keys=password"); !strings.Contains(got, "from-template") {
		t.Errorf("the credentials are %s", got)
	}
	c.OC("delete", "servicebinding/made-binding")
	c.OC("delete", "serviceinstance/made")
	waitDeleted(c, "secret/made")
}

func TestProjectIsDeletedWithItsInstances(t *testing.T) {
	c := kit.Shared(t)
	b, url := startBroker(t, c)
	deleteProject := func(t *testing.T, in *kit.Cluster, class string) {
		t.Helper()
		in.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: db}, spec: {` + class + `: cloud}}`)
		in.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: db}, spec: {instanceRef: {name: db}}}`)
		wait(in, "servicebinding/db", "{.status.lastConditionState}", "Ready")
		id := in.OC("get", "serviceinstance/db", "-o", "jsonpath={.spec.externalID}")
		c.OC("delete", "project/"+in.Namespace, "--wait=false")
		waitDeleted(c, "namespace/"+in.Namespace)
		if orders, deletions := b.Count(id); orders != 1 || deletions != 1 {
			t.Errorf("the broker created %d instances and deleted %d", orders, deletions)
		}
	}
	t.Run("broker of the cluster", func(t *testing.T) {
		register(t, c, url, "projects")
		c.OC("new-project", "catalog-deleted", "--skip-config-write")
		deleteProject(t, c.In("catalog-deleted"), "clusterServiceClassExternalName")
	})
	// Deleting a project must also delete its broker, and the broker's classes and credentials.
	t.Run("broker of the project", func(t *testing.T) {
		c.OC("new-project", "catalog-deleted-broker", "--skip-config-write")
		in := c.In("catalog-deleted-broker")
		in.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: broker}, stringData: {username: catalog, password: %q}}`, osbtest.Password))
		in.Apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBroker, metadata: {name: own},
			spec: {url: %q, relistBehavior: Manual, authInfo: {basic: {secretRef: {name: broker}}}}}`, url))
		wait(in, "servicebroker/own", "{.status.lastConditionState}", "Ready")
		deleteProject(t, in, "serviceClassExternalName")
	})
}
