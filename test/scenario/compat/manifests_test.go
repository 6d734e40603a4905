package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// former contains objects in the manifest format of OpenShift 3.5 and earlier.
var former = []string{
	"{kind: Route, metadata: {name: front}, spec: {host: former.example.com, to: {kind: Service, name: web}}}",
	"{kind: ImageStream, metadata: {name: ruby}}",
	"{kind: BuildConfig, metadata: {name: web}, spec: {source: {git: {uri: 'https://git.example.com/web'}}, strategy: {type: Docker, dockerStrategy: {}}}}",
	"{kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: 0, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web}]}}}}",
	"{kind: Template, metadata: {name: web}, objects: [], parameters: []}",
	"{kind: RoleBindingRestriction, metadata: {name: users}, spec: {userrestriction: {users: [joe], groups: [], labels: null}}}",
}

// mapper maps kinds to paths with discovery, as kubectl, oc and Helm do. aggregated selects the
// discovery format that clients have requested since Kubernetes 1.26.
func mapper(t *testing.T, c *kit.Cluster, aggregated bool) meta.RESTMapper {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	client.UseLegacyDiscovery = !aggregated
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// manifest parses an object and sets `apiVersion: v1`.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion("v1")
	return object
}

func TestStockClientsCreateKindsWithoutGroup(t *testing.T) {
	c := kit.Shared(t)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, aggregated := range []bool{true, false} {
		mapper := mapper(t, c, aggregated)
		for _, text := range former {
			object := manifest(t, text)
			mapping, err := mapper.RESTMapping(schema.GroupKind{Kind: object.GetKind()}, "v1")
			if err != nil {
				t.Errorf("aggregated %v: %v", aggregated, err)
				continue
			}
			resource := client.Resource(mapping.Resource).Namespace(c.Namespace)
			created, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil || created.GetAPIVersion() != "v1" || created.GetKind() != object.GetKind() {
				t.Errorf("create %s: %v, %v", object.GetKind(), created, err)
				continue
			}
			if _, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{}); err != nil {
				t.Errorf("get %s: %v", object.GetKind(), err)
			}
			if err := resource.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Errorf("delete %s: %v", object.GetKind(), err)
			}
			c.WaitFor("deletion of "+object.GetKind(), func(ctx context.Context) error {
				_, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
				if !apierrors.IsNotFound(err) {
					return fmt.Errorf("the object exists, error %v", err)
				}
				return nil
			})
		}
	}
}

func TestShortNamesPreferKubernetesGroups(t *testing.T) {
	c := kit.Shared(t)
	for name, want := range map[string]string{
		"routes": "route.openshift.io", "dc": "apps.openshift.io", "bc": "build.openshift.io", "is": "image.openshift.io", "template": "template.openshift.io",
		"rolebinding": "authorization.openshift.io", "clusterroles": "authorization.openshift.io", "role": "authorization.openshift.io",
	} {
		got := c.OC("get", name, "-A", "-o", "jsonpath={.items[*].apiVersion}")
		if group := want + "/v1"; strings.Trim(strings.ReplaceAll(got, group, ""), " ") != "" {
			t.Errorf("%s is %s, want %s", name, got, group)
		}
	}
	resources, err := c.Client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	// Garbage collection, namespace deletion and quotas process every resource that supports these
	// verbs, so the aliases must not support them.
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, resources) {
		for _, resource := range list.APIResources {
			if list.GroupVersion == "v1" && (strings.HasPrefix(resource.Name, "oapi-") || resource.Kind == "Route") {
				t.Errorf("%s has verbs %v", resource.Name, resource.Verbs)
			}
		}
	}
}

// TestOpenAPIOfEveryGroupIsServed checks that OpenShift's groups are in the OpenAPI v2 document,
// which clients before Kubernetes 1.27 use.
func TestOpenAPIOfEveryGroupIsServed(t *testing.T) {
	c := kit.Shared(t)
	c.WaitFor("OpenAPI 2", func(ctx context.Context) error {
		document, err := c.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err != nil {
			return err
		}
		if !strings.Contains(string(document), "/apis/apps.openshift.io/v1/namespaces/{namespace}/deploymentconfigs/{name}/rollback") {
			return errors.New("the document has no deployment configurations")
		}
		return nil
	})
}
