package openshiftapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/test/kit"
)

// samples contains objects that together contain every user-writable field whose type has required
// fields.
var samples = []resource{
	{group: "apps", plural: "deploymentconfigs", kind: "DeploymentConfig", body: `
spec:
  replicas: 0
  strategy:
    type: Rolling
    rollingParams:
      pre: {failurePolicy: Abort, execNewPod: {command: [run], containerName: web}}
      post: {failurePolicy: Ignore, tagImages: [{containerName: web, to: {kind: ImageStreamTag, name: 'app:next'}}]}
  triggers: [{type: ImageChange, imageChangeParams: {containerNames: [web], from: {kind: ImageStreamTag, name: 'app:latest'}}}]
  selector: {app: web}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web}]}}`},
	{group: "build", plural: "buildconfigs", kind: "BuildConfig", body: `
spec:
  source:
    git: {uri: 'https://git.example.com/app.git'}
    images: [{from: {kind: ImageStreamTag, name: 'app:latest'}, paths: [{sourcePath: /a, destinationDir: b}]}]
    secrets: [{secret: {name: s}, destinationDir: c}]
    configMaps: [{configMap: {name: m}, destinationDir: d}]
  strategy:
    sourceStrategy:
      from: {kind: ImageStreamTag, name: 'ruby:2.5'}
      volumes: [{name: v, source: {type: Secret, secret: {secretName: s}}, mounts: [{destinationPath: /x}]}]
  output: {to: {kind: ImageStreamTag, name: 'app:latest'}, imageLabels: [{name: a, value: b}]}
  triggers: [{type: ConfigChange}]`},
	{group: "build", plural: "buildconfigs", kind: "BuildConfig",
		body: "spec: {strategy: {customStrategy: {from: {kind: DockerImage, name: a}, secrets: [{secretSource: {name: s}, mountPath: /s}]}}}"},
	{group: "build", plural: "builds", kind: "Build", body: `
spec:
  source: {git: {uri: 'https://git.example.com/app.git'}}
  revision: {type: Git, git: {commit: abc}}
  strategy: {dockerStrategy: {}}`},
	{group: "image", plural: "images", kind: "Image", clusterwide: true, body: `
dockerImageReference: registry.example.com/app@` + digest + `
dockerImageLayers: [{name: '` + digest + `', size: 1, mediaType: application/vnd.oci.image.layer.v1.tar}]`},
	{group: "image", plural: "imagestreams", kind: "ImageStream",
		body: "spec: {lookupPolicy: {local: true}, tags: [{name: latest, from: {kind: DockerImage, name: 'registry.example.com/app:1'}, referencePolicy: {type: Local}}]}"},
	{group: "route", plural: "routes", kind: "Route", body: `
spec:
  host: www.example.com
  to: {kind: Service, name: web, weight: 1}
  alternateBackends: [{kind: Service, name: other, weight: 1}]
  port: {targetPort: 80}
  tls: {termination: edge}
  httpHeaders: {actions: {request: [{name: X-Test, action: {type: Set, set: {value: a}}}]}}`},
	{group: "template", plural: "templates", kind: "Template", body: "objects: []\nparameters: [{name: NAME}]"},
	{group: "template", plural: "templateinstances", kind: "TemplateInstance", body: "spec: {template: {metadata: {name: x}, objects: []}}"},
	{group: "quota", plural: "clusterresourcequotas", kind: "ClusterResourceQuota", clusterwide: true,
		body: "spec: {selector: {annotations: {openshift.io/requester: nobody}}, quota: {hard: {pods: '10'}}}"},
	{group: "network", plural: "clusternetworks", kind: "ClusterNetwork", clusterwide: true,
		body: "serviceNetwork: 172.30.0.0/16\nclusterNetworks: [{CIDR: 10.128.0.0/14, hostSubnetLength: 9}]"},
	{group: "network", plural: "hostsubnets", kind: "HostSubnet", clusterwide: true, body: "host: NAME\nhostIP: 192.0.2.1\nsubnet: 10.128.0.0/23"},
	{group: "network", plural: "netnamespaces", kind: "NetNamespace", clusterwide: true, body: "netname: NAME\nnetid: 20"},
	{group: "network", plural: "egressnetworkpolicies", kind: "EgressNetworkPolicy", body: "spec: {egress: [{type: Deny, to: {cidrSelector: 0.0.0.0/0}}]}"},
	{group: "oauth", plural: "oauthclients", kind: "OAuthClient", clusterwide: true,
		body: "grantMethod: auto\nscopeRestrictions: [{clusterRole: {roleNames: [view], namespaces: [default], allowEscalation: false}}]"},
	{group: "user", plural: "users", kind: "User", clusterwide: true, body: "groups: []"},
	{group: "user", plural: "groups", kind: "Group", clusterwide: true, body: "users: [anna]"},
	{group: "user", plural: "identities", kind: "Identity", clusterwide: true, body: "providerName: file\nproviderUserName: anna\nuser: {}"},
	{group: "security", plural: "securitycontextconstraints", kind: "SecurityContextConstraints", clusterwide: true, body: `
priority: null
allowPrivilegedContainer: false
defaultAddCapabilities: []
requiredDropCapabilities: []
allowedCapabilities: []
allowedFlexVolumes: [{driver: example.com/cifs}]
allowHostDirVolumePlugin: false
volumes: [flexVolume]
allowHostNetwork: false
allowHostPorts: false
allowHostPID: false
allowHostIPC: false
readOnlyRootFilesystem: false
runAsUser: {type: RunAsAny}
seLinuxContext: {type: RunAsAny}
fsGroup: {type: RunAsAny}
supplementalGroups: {type: RunAsAny}`},
	{group: "authorization", plural: "roles", kind: "Role", body: "rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]"},
	{group: "authorization", plural: "rolebindings", kind: "RoleBinding", body: "roleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: User, name: anna}]"},
	{group: "authorization", plural: "rolebindingrestrictions", kind: "RoleBindingRestriction",
		body: "spec: {userrestriction: {users: [anna], groups: [], labels: []}, grouprestriction: null, serviceaccountrestriction: null}"},
	{group: "authorization", plural: "localsubjectaccessreviews", kind: "LocalSubjectAccessReview",
		body: "{namespace: '', verb: get, resourceAPIGroup: '', resourceAPIVersion: '', resource: pods, resourceName: '', path: '', isNonResourceURL: false, user: anna, groups: [], scopes: []}"},
	{group: "security", plural: "podsecuritypolicyselfsubjectreviews", kind: "PodSecurityPolicySelfSubjectReview",
		body: "spec: {template: {spec: {containers: [{name: web, image: localhost/web}]}}}"},
}

// schemas contains the OpenAPI schemas of a group version, keyed by name.
type schemas map[string]*schemaOf

// schemaOf contains the fields of an OpenAPI schema that checkRequired reads.
type schemaOf struct {
	Ref        string                  `json:"$ref"`
	AllOf      []*schemaOf             `json:"allOf"`
	Properties map[string]*schemaOf    `json:"properties"`
	Items      *schemaOf               `json:"items"`
	Required   []string                `json:"required"`
	Kinds      []struct{ Kind string } `json:"x-kubernetes-group-version-kind"`
}

// resolve returns the schema that a schema refers to, or nil for one of Kubernetes' own schemas.
func (s schemas) resolve(schema *schemaOf) *schemaOf {
	if len(schema.AllOf) == 1 {
		schema = schema.AllOf[0]
	}
	if schema.Ref == "" {
		return schema
	}
	name := strings.TrimPrefix(schema.Ref, "#/components/schemas/")
	if !strings.Contains(name, ".openshift.") {
		return nil
	}
	return s[name]
}

// visitRequired calls visit for each required field in a value, including the values inside it.
func (s schemas) visitRequired(schema *schemaOf, value any, path string, visit func(parent map[string]any, field, path string)) {
	if schema = s.resolve(schema); schema == nil {
		return
	}
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			s.visitRequired(schema.Items, item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case map[string]any:
		for _, field := range schema.Required {
			visit(value, field, path+"."+field)
		}
		for field, content := range value {
			if property := schema.Properties[field]; property != nil {
				s.visitRequired(property, content, path+"."+field, visit)
			}
		}
	}
}

func TestSchemasRequireFieldsThatServerRequires(t *testing.T) {
	c := kit.Shared(t)
	groups := map[string]schemas{}
	for _, sample := range samples {
		version := sample.version().String()
		if groups[version] == nil {
			var document struct {
				Components struct{ Schemas schemas }
			}
			if err := json.Unmarshal([]byte(c.OC("get", "--raw", "/openapi/v3/apis/"+version)), &document); err != nil {
				t.Fatal(err)
			}
			groups[version] = document.Components.Schemas
		}
		checkRequired(t, c, sample, groups[version])
	}
}

// checkRequired checks that the API server rejects the sample if any field that its schema requires
// is missing.
func checkRequired(t *testing.T, c *kit.Cluster, sample resource, all schemas) {
	t.Helper()
	name := "sample"
	if sample.kind == "Identity" {
		name = "file:anna"
	}
	client, object := sample.client(t, c), sample.object(t, c, name)
	create := func() error {
		_, err := client.Create(t.Context(), &unstructured.Unstructured{Object: object.DeepCopy().Object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(); err != nil {
		t.Errorf("%s: %v", sample.kind, err)
		return
	}
	for _, schema := range all {
		if len(schema.Kinds) == 0 || schema.Kinds[0].Kind != sample.kind {
			continue
		}
		all.visitRequired(schema, object.Object, sample.kind, func(parent map[string]any, field, path string) {
			value, exists := parent[field]
			if !exists {
				t.Errorf("%s: the schema requires the field, but the server accepts the sample, which does not contain it", path)
				return
			}
			delete(parent, field)
			if create() == nil {
				t.Errorf("%s: the schema requires the field, but the server does not", path)
			}
			parent[field] = value
		})
	}
}
