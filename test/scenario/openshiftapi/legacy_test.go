package openshiftapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// identity contains the response fields that the tests compare.
type identity struct {
	APIVersion, Kind string
	Metadata         metav1.ObjectMeta
	Items            []identity
	Versions         []string
}

// decode decodes a response.
func decode(t *testing.T, result rest.Result) (seen identity) {
	t.Helper()
	raw, err := result.Raw()
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if err := json.Unmarshal(raw, &seen); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return seen
}

const oldRoute = `{"apiVersion": "v1", "kind": "Route", "metadata": {"name": "front", "labels": {"old": "yes"}}, "spec": {"host": "old.example.com", "to": {"name": "web"}}}`

func TestKindsWithoutGroup(t *testing.T) {
	c := kit.Shared(t)
	client := c.Client.CoreV1().RESTClient()
	base := "/oapi/v1/namespaces/" + c.Namespace + "/routes"
	group := "/apis/route.openshift.io/v1/namespaces/" + c.Namespace + "/routes"

	if root := decode(t, client.Get().AbsPath("/oapi").Do(t.Context())); !slices.Equal(root.Versions, []string{"v1"}) {
		t.Errorf("/oapi has %+v", root)
	}
	identity := decode(t, client.Post().AbsPath(base).SetHeader("Content-Type", "application/json").Body([]byte(oldRoute)).Do(t.Context()))
	if identity.APIVersion != "v1" || identity.Kind != "Route" {
		t.Errorf("created %+v", identity)
	}
	for path, version := range map[string]string{
		base + "/front":  "v1",
		group + "/front": "route.openshift.io/v1",
		strings.Replace(base, "/oapi/", "/api/", 1) + "/front": "v1",
	} {
		if got := decode(t, client.Get().AbsPath(path).Do(t.Context())); got.APIVersion != version || got.Metadata.UID != identity.Metadata.UID {
			t.Errorf("%s is %+v", path, got)
		}
	}
	for _, selector := range []string{"labelSelector=old%3Dyes", "fieldSelector=spec.host%3Dold.example.com", "limit=1"} {
		name, value, _ := strings.Cut(strings.ReplaceAll(selector, "%3D", "="), "=")
		if got := decode(t, client.Get().AbsPath(base).Param(name, value).Do(t.Context())); got.APIVersion != "v1" || got.Kind != "RouteList" || len(got.Items) != 1 {
			t.Errorf("%s: %+v", selector, got)
		}
	}
	merged := decode(t, client.Patch(types.MergePatchType).AbsPath(base+"/front").Body([]byte(`{"metadata": {"labels": {"merged": "yes"}}}`)).Do(t.Context()))
	if merged.Metadata.Labels["merged"] != "yes" {
		t.Errorf("patched %+v", merged)
	}
	patched := decode(t, client.Patch(types.ApplyPatchType).AbsPath(base+"/front").Param("fieldManager", "old").
		Body([]byte(`{"apiVersion": "v1", "kind": "Route", "metadata": {"name": "front", "labels": {"applied": "yes"}}}`)).Do(t.Context()))
	if patched.APIVersion != "v1" || patched.Metadata.Labels["applied"] != "yes" || patched.Metadata.Labels["merged"] != "yes" {
		t.Errorf("applied %+v", patched)
	}
	// The path of the API group must also accept a body with the old API version.
	other := strings.Replace(oldRoute, `"front"`, `"side"`, 1)
	if got := decode(t, client.Post().AbsPath(group).SetHeader("Content-Type", "application/json").Body([]byte(other)).Do(t.Context())); got.APIVersion != "route.openshift.io/v1" {
		t.Errorf("created %+v", got)
	}
	if err := client.Delete().AbsPath(base + "/front").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := client.Get().AbsPath(group + "/front").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
}

func TestOldNamesAreNotInDiscovery(t *testing.T) {
	c := kit.Shared(t)
	core, err := c.Client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range core.APIResources {
		if resource.Name == "routes" {
			t.Error("routes are announced without a group")
		}
	}
	old, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/oapi/v1").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(old), `"name":"deploymentconfigs/scale"`) || strings.Contains(string(old), "templateinstances") {
		t.Errorf("/oapi/v1 announces %s, %v", old, err)
	}
	if got := c.OC("api-resources", "--no-headers", "-o", "name", "--api-group", ""); strings.Contains(got, "route") {
		t.Errorf("resources without a group are\n%s", got)
	}
}

func TestRolesApplyToOldNames(t *testing.T) {
	c := kit.Shared(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"route.openshift.io"}, Resources: []string{"routes"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}}}
	if _, err := c.Client.RbacV1().Roles(c.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client.RbacV1().RoleBindings(c.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = "eve"
	eve, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) error {
		return eve.CoreV1().RESTClient().Get().AbsPath(path).Do(context.Background()).Error()
	}
	c.WaitFor("eve's right", func(context.Context) error { return get("/oapi/v1/namespaces/" + c.Namespace + "/routes") })
	for _, path := range []string{"/oapi/v1/namespaces/" + c.Namespace + "/templates", "/oapi/v1/routes", "/api/v1/namespaces/" + c.Namespace + "/templates"} {
		if err := get(path); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOldManifestsAreAccepted(t *testing.T) {
	c := kit.Shared(t)
	manifest := `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Route, metadata: {name: front}, spec: {host: www.example.com, to: {name: web}}}
- {apiVersion: v1, kind: ImageStream, metadata: {name: ruby}}
- {apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web}]}}}}
---
{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: web}, spec: {backend: {serviceName: web, servicePort: 80}}}
---
{apiVersion: batch/v2alpha1, kind: CronJob, metadata: {name: night}, spec: {schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: localhost/a}]}}}}}}
`
	c.Apply(manifest)
	c.Apply(manifest) // a second apply must change nothing
	for _, object := range []string{"route/front", "is/ruby", "deployment.apps/web", "ingress.networking.k8s.io/web", "cronjob.batch/night"} {
		c.OC("get", object)
	}
	if got := c.OC("get", "deployment/web", "-o", "jsonpath={.spec.strategy.rollingUpdate.maxSurge}{.spec.selector.matchLabels.app}"); got != "1web" {
		t.Errorf("deployment has %q", got)
	}
	file := t.TempDir() + "/web.yaml"
	write(t, file, manifest)
	c.OC("replace", "-f", file)
	c.OC("delete", "-f", file)
	if got := c.OC("get", "route,is,deployment,ingress,cronjob", "-o", "name"); got != "" {
		t.Errorf("left:\n%s", got)
	}
	write(t, file, fmt.Sprintf("{apiVersion: v1, kind: Route, metadata: {name: side}, spec: {to: {name: %q}}}", ""))
	if _, err := c.TryOC("create", "-f", file); err == nil || !strings.Contains(err.Error(), "spec.to.name: Required value") ||
		!strings.Contains(err.Error(), "Warning: Route \"side\": apiVersion v1 is no longer served, route.openshift.io/v1 is used") {
		t.Errorf("error is %v", err)
	}
}
