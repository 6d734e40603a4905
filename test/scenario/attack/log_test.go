package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestDeploymentLogExcludesForeignPods allows Mallory to read deployment logs in Alice's project,
// but nothing else in that project.
func TestDeploymentLogExcludesForeignPods(t *testing.T) {
	s := tenants(t)
	owner := s.Administrator()
	const rbac = "rbac.authorization.k8s.io"
	owner.May("POST", kit.GroupPath(rbac, s.shop, "roles"), "{apiVersion: "+rbac+"/v1, kind: Role, metadata: {name: logs}, rules: [{apiGroups: [apps.openshift.io], resources: [deploymentconfigs/log], verbs: [get]}]}")
	owner.May("POST", kit.GroupPath(rbac, s.shop, "rolebindings"), "{apiVersion: "+rbac+"/v1, kind: RoleBinding, metadata: {name: logs}, roleRef: {apiGroup: "+rbac+", kind: Role, name: logs}, "+
		"subjects: [{apiGroup: "+rbac+", kind: User, name: mallory}]}")

	// Alice's pod has the deployment's labels but belongs to another controller.
	ctx := context.Background()
	s.alice.May("POST", kit.CorePath(s.shop, "configmaps"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	object, err := s.Client.CoreV1().ConfigMaps(s.shop).Get(ctx, "owner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const labels = "{app: web, deployment: web-1, deploymentconfig: web}"
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: private, labels: "+labels+", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+
		string(object.UID)+", controller: true}]}, spec: {terminationGracePeriodSeconds: 1, containers: ["+container("echo classified; exec sleep infinity")+"]}}")
	s.In(s.shop).WaitPodRunning("private")
	s.alice.May("POST", kit.GroupPath("apps.openshift.io", s.shop, "deploymentconfigs"), "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: 1, selector: {app: web}, triggers: [{type: ConfigChange}], "+
		"template: {metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 1, containers: ["+container("echo public; exec sleep infinity")+"]}}}}")
	log := kit.GroupPath("apps.openshift.io", s.shop, "deploymentconfigs") + "/web/log"
	s.WaitFor("the log of the deployment", func(context.Context) error {
		content, err := s.mallory.Try("GET", log, "")
		if strings.Contains(content, "classified") {
			t.Fatalf("mallory reads the log of a pod that does not belong to the deployment:\n%s", content)
		}
		if err == nil && !strings.Contains(content, "public") {
			err = fmt.Errorf("it is %q", content)
		}
		return err
	})
	s.mallory.MayNot("GET", kit.CorePath(s.shop, "pods/private/log"), "", "cannot")
}
