package openshiftapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// resource is a stored resource. body contains an object's required fields. columns contains the
// columns of its table after the name column. names contains its names in `oc get`.
type resource struct {
	group, plural, kind string
	clusterwide         bool
	body                string
	columns             string
	names               string
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var resources = []resource{
	{group: "apps", plural: "deploymentconfigs", kind: "DeploymentConfig", names: "dc deploymentconfig",
		body:    "spec: {paused: true, replicas: 0, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web}]}}}",
		columns: "Revision Desired Current Triggered By"},
	{group: "build", plural: "buildconfigs", kind: "BuildConfig", names: "bc buildconfig",
		body:    "spec: {source: {git: {uri: 'https://git.example.com/app.git'}}, strategy: {sourceStrategy: {from: {name: 'ruby:2.5'}}}}",
		columns: "Type From Latest"},
	{group: "build", plural: "builds", kind: "Build", names: "build",
		body:    "spec: {source: {git: {uri: 'https://git.example.com/app.git'}}, strategy: {dockerStrategy: {}}}",
		columns: "Type From Status Started Duration"},
	{group: "image", plural: "images", kind: "Image", clusterwide: true, names: "image",
		body: "dockerImageReference: registry.example.com/app@" + digest, columns: "Image Name"},
	{group: "image", plural: "imagestreams", kind: "ImageStream", names: "is imagestream",
		body: "spec: {lookupPolicy: {local: true}}", columns: "Docker Repo Tags Updated"},
	{group: "route", plural: "routes", kind: "Route", names: "route",
		body: "spec: {host: www.example.com, to: {name: web}}", columns: "Host/Port Path Services Port Termination Wildcard"},
	{group: "template", plural: "templates", kind: "Template", names: "template",
		body: "objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: '${NAME}'}}]\nparameters: [{name: NAME}]", columns: "Description Parameters Objects"},
	{group: "template", plural: "templateinstances", kind: "TemplateInstance", names: "templateinstance",
		body: "spec: {template: {metadata: {name: x}, objects: []}}", columns: "Template"},
	{group: "template", plural: "brokertemplateinstances", kind: "BrokerTemplateInstance", clusterwide: true, names: "brokertemplateinstance",
		body:    "spec: {templateInstance: {kind: TemplateInstance, name: x, namespace: z}, secret: {kind: Secret, name: x, namespace: z}}",
		columns: "TemplateInstance"},
	{group: "quota", plural: "clusterresourcequotas", kind: "ClusterResourceQuota", clusterwide: true, names: "clusterquota clusterresourcequota",
		body:    "spec: {selector: {annotations: {openshift.io/requester: nobody}}, quota: {hard: {pods: '10'}}}",
		columns: "Label Selector Annotation Selector"},
	{group: "network", plural: "clusternetworks", kind: "ClusterNetwork", clusterwide: true, names: "clusternetwork",
		body:    "serviceNetwork: 172.30.0.0/16\nclusterNetworks: [{CIDR: 10.128.0.0/14, hostSubnetLength: 9}]",
		columns: "Cluster Networks Service Network Plugin Name"},
	{group: "network", plural: "hostsubnets", kind: "HostSubnet", clusterwide: true, names: "hostsubnet",
		body: "host: NAME\nhostIP: 192.0.2.1\nsubnet: 10.128.0.0/23", columns: "Host Host IP Subnet Egress CIDRs Egress IPs"},
	{group: "network", plural: "netnamespaces", kind: "NetNamespace", clusterwide: true, names: "netnamespace",
		body: "netname: NAME\nnetid: 20", columns: "NetID Egress IPs"},
	{group: "network", plural: "egressnetworkpolicies", kind: "EgressNetworkPolicy", names: "egressnetworkpolicy",
		body: "spec: {egress: [{type: Deny, to: {cidrSelector: 0.0.0.0/0}}]}", columns: ""},
	{group: "servicecatalog.k8s.io", plural: "clusterserviceclasses", kind: "ClusterServiceClass", clusterwide: true, names: "clusterserviceclass",
		body:    "spec: {clusterServiceBrokerName: none, externalName: db, externalID: db, description: A database, externalMetadata: {a: b}}",
		columns: "External-Name Broker Age"},
	{group: "servicecatalog.k8s.io", plural: "clusterserviceplans", kind: "ClusterServicePlan", clusterwide: true, names: "clusterserviceplan",
		body:    "spec: {clusterServiceBrokerName: none, clusterServiceClassRef: {name: db}, externalName: small, externalID: small, description: A plan}",
		columns: "External-Name Broker Class Age"},
	{group: "servicecatalog.k8s.io", plural: "serviceclasses", kind: "ServiceClass", names: "serviceclass",
		body:    "spec: {serviceBrokerName: none, externalName: db, externalID: db, description: A database, tags: [sql]}",
		columns: "External-Name Broker Age"},
	{group: "servicecatalog.k8s.io", plural: "serviceplans", kind: "ServicePlan", names: "serviceplan",
		body:    "spec: {serviceBrokerName: none, serviceClassRef: {name: db}, externalName: small, externalID: small, description: A plan, free: true}",
		columns: "External-Name Broker Class Age"},
}

func (r resource) version() schema.GroupVersion {
	if r.group == "servicecatalog.k8s.io" {
		return schema.GroupVersion{Group: r.group, Version: "v1beta1"}
	}
	return schema.GroupVersion{Group: r.group + ".openshift.io", Version: "v1"}
}

// object returns a valid object with the given name.
func (r resource) object(t *testing.T, c *kit.Cluster, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.body), &object.Object); err != nil {
		t.Fatal(err)
	}
	for key, value := range object.Object {
		if value == "NAME" { // replace the placeholder for the object's name
			object.Object[key] = name
		}
	}
	object.SetAPIVersion(r.version().String())
	object.SetKind(r.kind)
	object.SetName(name)
	if !r.clusterwide {
		object.SetNamespace(c.Namespace)
	}
	return object
}

// client returns a client for the resource. For a namespaced resource, it uses the test's
// namespace.
func (r resource) client(t *testing.T, c *kit.Cluster) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	existing := client.Resource(r.version().WithResource(r.plural))
	if r.clusterwide {
		return existing
	}
	return existing.Namespace(c.Namespace)
}
