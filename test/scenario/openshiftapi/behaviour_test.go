package openshiftapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/test/kit"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClientsFindAndExplainEveryResource(t *testing.T) {
	c := kit.Shared(t)
	var names []string
	for _, r := range resources {
		names = append(names, strings.Fields(r.names)...)
		document, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/openapi/v3/apis/" + r.version().String()).DoRaw(t.Context())
		if err != nil || !bytes.Contains(document, []byte(`"kind":"`+r.kind+`","version":"`+r.version().Version+`"`)) {
			t.Errorf("%s is not described: %v", r.kind, err)
		}
	}
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(c.OC("get", "--raw", "/openapi/v3")), &list); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"apis/apps/v1", "apis/route.openshift.io/v1"} {
		// A document's URL contains a hash. Clients cache the document as long as the list contains
		// this URL.
		address, err := url.Parse(list.Paths[path].ServerRelativeURL)
		if err != nil || address.Path != "/openapi/v3/"+path || address.Query().Get("hash") == "" {
			t.Fatalf("the document of %s is at %q: %v", path, list.Paths[path].ServerRelativeURL, err)
		}
		for _, hash := range []string{address.Query().Get("hash"), "OLD"} {
			document, err := c.Client.CoreV1().RESTClient().Get().AbsPath(address.Path).Param("hash", hash).SetHeader("Accept", "application/json").DoRaw(t.Context())
			if err != nil || !bytes.Contains(document, []byte(`"openapi":"3.0.0"`)) {
				t.Errorf("the document of %s with the hash %s: %v\n%.200s", path, hash, err, document)
			}
		}
	}
	c.OC("get", strings.Join(names, ","))
	for field, want := range map[string]string{
		"route.spec.tls.termination":         "<string>",
		"dc.spec.template.spec.containers":   "<[]Container>",
		"bc.spec.source.git":                 "GitBuildSource",
		"is.spec.tags.from":                  "ObjectReference",
		"template.parameters":                "<[]Parameter>",
		"clusterquota.spec.quota.hard":       "map[string]Quantity",
		"hostsubnet.egressIPs":               "<[]string>",
		"egressnetworkpolicy.spec.egress.to": "EgressNetworkPolicyPeer",
	} {
		if got := c.OC("explain", field); !strings.Contains(got, want) {
			t.Errorf("oc explain %s does not print %q:\n%s", field, want, got)
		}
	}
	c.Apply("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: front}, spec: {host: www.example.com, to: {name: web}}}")
	if got := c.OC("get", "all", "-o", "name"); !strings.Contains(got, "route.route.openshift.io/front") {
		t.Errorf("all is\n%s", got)
	}
}

func TestDeploymentConfigsScaleAndKeepTheirStatus(t *testing.T) {
	c := kit.Shared(t)
	r := resources[0]
	client := r.client(t, c)
	object := r.object(t, c, "web")
	object.Object["status"] = map[string]any{"latestVersion": int64(7)}
	result, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := unstructured.NestedInt64(result.Object, "status", "latestVersion")
	strategy, _, _ := unstructured.NestedString(result.Object, "spec", "strategy", "type")
	policy, _, _ := unstructured.NestedString(result.Object, "spec", "template", "spec", "restartPolicy")
	if version != 0 || strategy != "Rolling" || policy != "Always" || result.GetGeneration() != 1 {
		t.Errorf("created %v", result)
	}
	c.OC("scale", "dc/web", "--replicas=3")
	if got := c.OC("get", "dc/web", "-o", "jsonpath={.spec.replicas} {.metadata.generation}"); got != "3 2" {
		t.Errorf("scaled to %q", got)
	}
	if _, err := c.TryOC("scale", "dc/web", "--replicas=1", "--current-replicas=7"); err == nil {
		t.Error("scaled with the wrong number of current replicas")
	}
	status := `{"metadata": {"labels": {"ignored": "yes"}}, "spec": {"replicas": 9}, "status": {"latestVersion": 1, "replicas": 2}}`
	c.OC("patch", "dc/web", "--subresource=status", "--type=merge", "-p", status)
	if got := c.OC("get", "dc/web", "-o", "jsonpath={.spec.replicas} {.metadata.labels} {.status.latestVersion} {.metadata.generation}"); got != "3  1 2" {
		t.Errorf("after a change of the status: %q", got)
	}
	if _, err := c.TryOC("patch", "dc/web", "--subresource=status", "--type=merge", "-p", `{"status": {"latestVersion": 0}}`); err == nil {
		t.Error("the latest version was decreased")
	}
	bad := "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: bad}, spec: {template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a}]}}}}"
	file := filepath.Join(t.TempDir(), "bad.yaml")
	write(t, file, bad)
	if _, err := c.TryOC("create", "-f", file); err == nil || !strings.Contains(err.Error(), "spec.template.spec.containers[0].image: Required value") {
		t.Errorf("pods without an image: %v", err)
	}
}

func TestTagsOfImageStreams(t *testing.T) {
	c := kit.Shared(t)
	c.Apply("{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: ruby}}")
	path := "/apis/image.openshift.io/v1/namespaces/" + c.Namespace + "/imagestreammappings"
	push := func(id string) {
		t.Helper()
		body := fmt.Sprintf(`{"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping", "metadata": {"name": "ruby"}, "tag": "2.5",
			"image": {"metadata": {"name": %q}, "dockerImageReference": "registry.example.com/ruby@%[1]s"}}`, id)
		if err := c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.OC("delete", "image", id, "--ignore-not-found") })
	}
	older, newer := strings.Replace(digest, "0123", "aaaa", 1), strings.Replace(digest, "0123", "bbbb", 1)
	push(older)
	c.Apply("{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: ruby}, spec: {tags: [{name: stable, from: {kind: ImageStreamTag, name: 'ruby:2.5'}}]}}")
	push(newer)
	for tag, want := range map[string]string{"ruby:2.5": newer, "ruby:stable": newer} {
		if got := c.OC("get", "istag", tag, "-o", "jsonpath={.image.metadata.name}"); got != want {
			t.Errorf("%s is %s", tag, got)
		}
	}
	if got := c.OC("get", "is/ruby", "-o", "jsonpath={.status.tags[0].items[*].image}"); got != newer+" "+older {
		t.Errorf("history is %s", got)
	}
	const references = "jsonpath={.status.tags[0].items[*].dockerImageReference}"
	if got := c.OC("get", "is/ruby", "-o", references); got != "registry.example.com/ruby@"+newer+" registry.example.com/ruby@"+older {
		t.Errorf("locations of the images in the history: %s", got)
	}
	c.OC("create", "secret", "docker-registry", "pull", "--docker-server=registry.example.com", "--docker-username=a", "--docker-password=b")
	c.OC("create", "secret", "generic", "other", "--from-literal=a=b")
	var secrets corev1.SecretList
	if err := json.Unmarshal([]byte(c.OC("get", "--raw", strings.TrimSuffix(path, "mappings")+"s/ruby/secrets")), &secrets); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, secret := range secrets.Items {
		names[secret.Name] = true
	}
	if !names["pull"] || names["other"] {
		t.Errorf("the secrets of the stream are %v", names)
	}
	if got := c.OC("get", "isimage", "ruby@"+older[:15], "-o", "jsonpath={.image.dockerImageReference}"); got != "registry.example.com/ruby@"+older {
		t.Errorf("image of the stream is %s", got)
	}
	if got := c.OC("get", "istag", "-o", "name"); got != "imagestreamtag.image.openshift.io/ruby:2.5\nimagestreamtag.image.openshift.io/ruby:stable\n" {
		t.Errorf("tags are\n%s", got)
	}
	file := filepath.Join(t.TempDir(), "tag.yaml")
	write(t, file, "{apiVersion: image.openshift.io/v1, kind: ImageStreamTag, metadata: {name: 'python:3'}, tag: {from: {kind: ImageStreamTag, name: 'ruby:2.5'}}}")
	c.OC("create", "-f", file)
	if got := c.OC("get", "istag", "python:3", "-o", "jsonpath={.image.metadata.name}"); got != newer {
		t.Errorf("python:3 is %s", got)
	}
	c.OC("tag", "ruby:2.5", "tool")
	if got := c.OC("get", "istag", "tool:latest", "-o", "jsonpath={.image.metadata.name}"); got != newer {
		t.Errorf("a tag without a name is %s", got)
	}
	c.OC("delete", "istag", "ruby:stable", "ruby:2.5")
	if got := c.OC("get", "is/ruby", "-o", "jsonpath={.spec.tags}{.status.tags}"); got != "" {
		t.Errorf("after deletion: %s", got)
	}
}

func TestTemplatesAreProcessed(t *testing.T) {
	c := kit.Shared(t)
	template := `{"apiVersion": "template.openshift.io/v1", "kind": "Template", "metadata": {"name": "web"}, "labels": {"app": "${NAME}"},
		"parameters": [{"name": "NAME", "required": true, "value": "shop"}, {"name": "PORT", "value": "8080"}, {"name": "KEY", "generate": "expression", "from": "[a-z]{8}"}],
		"objects": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "${NAME}"}, "spec": {"ports": [{"port": "${{PORT}}"}]}}]}`
	process := func(text string) ([]byte, error) {
		path := "/apis/template.openshift.io/v1/namespaces/" + c.Namespace + "/processedtemplates"
		return c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(text)).DoRaw(t.Context())
	}
	response, err := process(template)
	if err != nil {
		t.Fatalf("%v\n%s", err, response)
	}
	var result struct {
		Parameters []struct{ Value string }
		Objects    []any
	}
	if err := json.Unmarshal(response, &result); err != nil || len(result.Parameters[2].Value) != 8 {
		t.Errorf("processed %s, %v", response, err)
	}
	object, _ := json.Marshal(result.Objects[0])
	if want := `{"apiVersion":"v1","kind":"Service","metadata":{"labels":{"app":"shop"},"name":"shop"},"spec":{"ports":[{"port":8080}]}}`; string(object) != want {
		t.Errorf("object is %s", object)
	}
	if _, err := process(strings.Replace(template, `"value": "shop"`, `"value": ""`, 1)); !apierrors.IsInvalid(err) {
		t.Errorf("without a required value: %v", err)
	}
}

func TestQuotaCountsOpenShiftResources(t *testing.T) {
	c := kit.Shared(t)
	c.Apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {count/routes.route.openshift.io: '1'}}}")
	c.WaitFor("the quota", func(context.Context) error {
		if got, err := c.TryOC("get", "quota/few", "-o", "jsonpath={.status.hard}"); err != nil || !strings.Contains(got, "1") {
			return fmt.Errorf("%s, %v", got, err)
		}
		return nil
	})
	c.Apply("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: one}, spec: {to: {name: web}}}")
	for _, path := range []string{"/apis/route.openshift.io/v1", "/oapi/v1", "/api/v1"} {
		err := c.Client.CoreV1().RESTClient().Post().AbsPath(path+"/namespaces/"+c.Namespace+"/routes").
			SetHeader("Content-Type", "application/json").Body([]byte(oldRoute)).Do(t.Context()).Error()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: few") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAdmissionPoliciesApplyToOpenShiftResources(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hosts}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    resourceRules: [{apiGroups: [route.openshift.io], apiVersions: [v1], operations: [CREATE], resources: [routes]}]
  validations: [{expression: "object.spec.host.endsWith('.allowed.example.com')", message: the host is not allowed}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: hosts}
spec: {policyName: hosts, validationActions: [Deny]}
`, c.Namespace))
	t.Cleanup(func() { c.OC("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "hosts") })
	n := 0
	c.WaitFor("the policy", func(ctx context.Context) error {
		for _, path := range []string{"/apis/route.openshift.io/v1", "/oapi/v1"} {
			n++
			body := strings.Replace(oldRoute, "front", fmt.Sprintf("front-%d", n), 1)
			err := c.Client.CoreV1().RESTClient().Post().AbsPath(path+"/namespaces/"+c.Namespace+"/routes").
				SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
			if err == nil || !strings.Contains(err.Error(), "the host is not allowed") {
				return fmt.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	c.Apply("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: fine}, spec: {host: a.allowed.example.com, to: {name: web}}}")
}

func TestTypesInPoliciesAreChecked(t *testing.T) {
	c := kit.Shared(t)
	for group, field := range map[string]string{"apps": "deployments", "route.openshift.io": "routes"} {
		c.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mistake-in-%[2]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%[1]s], apiVersions: [v1], operations: [CREATE], resources: [%[2]s]}]}
  validations: [{expression: object.spec.mistake > 1}]
`, group, field))
		t.Cleanup(func() { c.OC("delete", "validatingadmissionpolicy", "mistake-in-"+field) })
		c.WaitFor("warning in the status", func(context.Context) error {
			got := c.OC("get", "validatingadmissionpolicy", "mistake-in-"+field, "-o", "jsonpath={.status.typeChecking.expressionWarnings[*].warning}")
			if !strings.Contains(got, "undefined field 'mistake'") {
				return fmt.Errorf("the warning for %s is %q", field, got)
			}
			return nil
		})
	}
}

func TestProjectShowsQuotasThatApply(t *testing.T) {
	c := kit.Shared(t)
	c.OC("label", "namespace", c.Namespace, "team="+c.Namespace)
	c.Apply(fmt.Sprintf("{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: %[1]s}, spec: {selector: {labels: {matchLabels: {team: %[1]s}}}, quota: {hard: {pods: '10'}}}}", c.Namespace))
	t.Cleanup(func() { c.OC("delete", "clusterquota", c.Namespace) })
	c.WaitFor("the view of the quota", func(context.Context) error {
		if got, err := c.TryOC("get", "appliedclusterresourcequota", "-o", "name"); err != nil || !strings.Contains(got, c.Namespace) {
			return fmt.Errorf("%s, %v", got, err)
		}
		return nil
	})
	if got := c.OC("get", "appliedclusterresourcequota", "-n", "kube-system", "-o", "name"); got != "" {
		t.Errorf("another project sees %s", got)
	}
}

func TestObjectsOutliveRestartAndAreDeletedWithNamespace(t *testing.T) {
	// Disable encryption, because the test could not determine the encoding of encrypted objects.
	c := kit.Start(t, kit.Options{Master: "slipway: {encryptSecrets: false}"})
	c.OC("create", "namespace", "shop")
	file := filepath.Join(t.TempDir(), "route.yaml")
	write(t, file, "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: front}, spec: {host: www.example.com, to: {name: web}}}")
	c.OC("create", "-n", "shop", "-f", file)
	uid := c.OC("get", "route/front", "-n", "shop", "-o", "jsonpath={.metadata.uid}")
	if !storedAsProtobuf(t, c, "/route.openshift.io/routes/shop/front") {
		t.Error("the route is not stored as protobuf")
	}
	c.Kill("control-plane")
	c.WaitFor("the route", func(context.Context) error {
		got, err := c.TryOC("get", "route/front", "-n", "shop", "-o", "jsonpath={.metadata.uid} {.spec.host}")
		if err == nil && got != uid+" www.example.com" {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
	c.OC("delete", "namespace", "shop", "--timeout=100s")
	if got := c.OC("get", "routes", "-n", "shop", "-o", "name"); got != "" {
		t.Errorf("remaining: %s", got)
	}
}

// storedAsProtobuf reports whether etcd's files contain a key that is followed by the protobuf
// prefix. The regular expression limits the distance, because etcd's log also contains the key
// without a value, in the condition of each write.
func storedAsProtobuf(t *testing.T, c *kit.Cluster, key string) (exists bool) {
	t.Helper()
	existing := regexp.MustCompile(regexp.QuoteMeta(key) + `(?s:.{0,36}?)k8s\x00`)
	err := filepath.WalkDir(c.Path("etcd"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		exists = exists || existing.Match(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exists
}

func TestManyObjectsAreMigratedInParallel(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: app}, spec: {tags: [{name: v1, reference: true, from: {kind: DockerImage, name: "old.invalid/app:v1"}}]}}
---
{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: app}, spec: {replicas: 0, selector: {a: b},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: "old.invalid/app:v1"}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: app}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: DeploymentConfig, name: app}}}
`)
	c.OC("create", "secret", "docker-registry", "pull", "--docker-server=old.invalid", "--docker-username=a", "--docker-password=b")
	references := func(flags ...string) string {
		t.Helper()
		return c.OC(append([]string{"adm", "migrate", "image-references", "old.invalid/*=new.invalid/*", "--namespace=" + c.Namespace, "--include=imagestreams,secrets,dc"}, flags...)...)
	}
	if out := references(); !strings.Contains(out, "summary (dry run):") || !strings.Contains(out, "migrated=3") {
		t.Errorf("a trial: %s", out)
	}
	if out := references("--confirm"); !strings.Contains(out, "migrated: -n "+c.Namespace+" secrets/pull") || !strings.Contains(out, "migrated=3") {
		t.Errorf("confirmed: %s", out)
	}
	if out := references("--confirm"); !strings.Contains(out, "migrated=0") {
		t.Errorf("again: %s", out)
	}
	images := c.OC("get", "is/app", "dc/app", "-o", "jsonpath={.items[*].spec.tags[*].from.name} {.items[*].spec.template.spec.containers[*].image}")
	if images != "new.invalid/app:v1 new.invalid/app:v1" {
		t.Errorf("the images are %q", images)
	}
	c.OC("adm", "migrate", "legacy-hpa", "--confirm", "--namespace="+c.Namespace)
	if got := c.OC("get", "hpa/app", "-o", "jsonpath={.spec.scaleTargetRef.apiVersion}"); got != "apps.openshift.io/v1" {
		t.Errorf("the API version of the scale target is %q", got)
	}
	if out := c.OC("adm", "migrate", "storage", "--bandwidth=0"); !strings.Contains(out, "errors=0") {
		t.Errorf("migration of all objects: %s", out)
	}
}
