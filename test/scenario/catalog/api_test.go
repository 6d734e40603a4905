// Package catalog tests the service catalog on a real cluster, with a broker that implements the
// Open Service Broker API specification.
package catalog

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// manualBroker is a broker with manual relisting, at an address on which no process listens.
const manualBroker = `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceBroker, metadata: {name: api-test},
	spec: {url: "http://192.0.2.1:1", relistBehavior: Manual}}`

func TestKindsAreServedAndValidated(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(manualBroker)
	t.Cleanup(func() { c.OC("delete", "clusterservicebroker/api-test") })
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceClass, metadata: {name: api-class}, spec: {
		clusterServiceBrokerName: api-test, externalName: api-database, externalID: api-class, description: A database, bindable: true}}`)
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServicePlan, metadata: {name: api-plan}, spec: {
		clusterServiceBrokerName: api-test, clusterServiceClassRef: {name: api-class}, externalName: small, externalID: api-plan, description: Small, free: true}}`)
	expect := func(want string, args ...string) {
		t.Helper()
		if got := c.OC(args...); !strings.Contains(got, want) {
			t.Errorf("oc %s: %s\nwant %s", strings.Join(args, " "), got, want)
		}
	}
	expect("EXTERNAL-NAME   BROKER     AGE", "get", "clusterserviceclasses", "api-class")
	expect("api-class", "get", "clusterserviceclasses", "--field-selector=spec.externalName=api-database", "-o", "name")
	expect("api-plan", "get", "clusterserviceplans", "--field-selector=spec.free=true,spec.clusterServiceClassRef.name=api-class", "-o", "name")
	expect("ExternalID is the instance ID", "explain", "serviceinstances.spec.externalID")
	expect("External Name:", "describe", "clusterserviceclass/api-class")
	const instance = `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: mine},
		spec: {clusterServiceClassExternalName: api-database, parameters: {size: 1}}}`
	c.Apply(instance)
	t.Cleanup(func() {
		c.OC("annotate", "serviceinstance/mine", "servicecatalog.k8s.io/abandon=true")
		c.OC("delete", "serviceinstance/mine")
	})
	expect("small system:admin", "get", "serviceinstance/mine", "-o", "jsonpath={.spec.clusterServicePlanExternalName} {.spec.userInfo.username}")
	for name, tt := range map[string]struct{ args, want string }{
		"class of an instance":                      {`{"spec": {"clusterServiceClassExternalName": "other"}}`, "field is immutable"},
		"plan, if the class does not allow changes": {`{"spec": {"clusterServicePlanExternalName": "large"}}`, "does not allow plan changes"},
		"two classes":                               {`{"spec": {"serviceClassName": "other", "servicePlanName": "other"}}`, "already named"},
	} {
		if out, err := c.TryOC("patch", "serviceinstance/mine", "--type=merge", "-p", tt.args); err == nil || !strings.Contains(out+err.Error(), tt.want) {
			t.Errorf("%s: %s %v, want %q", name, out, err, tt.want)
		}
	}
	c.OC("patch", "clusterserviceplan/api-plan", "--type=merge", "-p", `{"spec": {"planUpdatable": true}}`)
	c.OC("patch", "serviceinstance/mine", "--type=merge", "-p", `{"spec": {"clusterServicePlanExternalName": "large"}}`)
	c.OC("policy", "add-role-to-user", "edit", "eve")
	if out, err := c.TryOC("--as=eve", "create", "clusterservicebroker"); err == nil {
		t.Errorf("an editor can create a cluster service broker: %s", out)
	}
	expect("yes", "--as=eve", "auth", "can-i", "create", "serviceinstances")
	expect("api-class", "--as=eve", "get", "clusterserviceclasses", "-o", "name")
}
