// Package tenants tests the permissions of users with many projects, on a cluster with a separate
// configuration. The users request projects with the administrator's template and limits, can list
// only their own projects, share quotas, and cannot exceed their permissions.
package tenants

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// master is the master's configuration. The cluster runs no pods, because the AlwaysPullImages
// plugin makes nodes pull every image.
const master = `
auditConfig: {enabled: true}
serviceAccountConfig: {limitSecretReferences: true}
projectConfig:
  projectRequestTemplate: openshift/project-request
  projectRequestMessage: Ask help@example.com for a project.
  defaultNodeSelector: region=primary
admissionConfig:
  pluginConfig:
    ProjectRequestLimit:
      configuration:
        apiVersion: v1
        kind: ProjectRequestLimitConfig
        limits:
        - selector: {level: gold}
        - selector: {level: silver}
          maxProjects: 2
        - maxProjects: 1
        maxProjectsForServiceAccounts: 1
    RunOnceDuration:
      configuration: {apiVersion: v1, kind: RunOnceDurationConfig, activeDeadlineSecondsOverride: 3600}
    PodNodeConstraints:
      configuration: {apiVersion: v1, kind: PodNodeConstraintsConfig, nodeSelectorLabelBlacklist: [kubernetes.io/hostname]}
    ClusterResourceOverride:
      configuration: {apiVersion: v1, kind: ClusterResourceOverrideConfig, memoryRequestToLimitPercent: 25, cpuRequestToLimitPercent: 50}
    AlwaysPullImages:
      configuration: {apiVersion: v1, kind: DefaultAdmissionConfig, disable: false}
    PodNodeSelector:
      configuration:
        podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: "", ns1: "region=west,env=test,infra=fedora,os=fedora"}
    ResourceQuota:
      configuration:
        apiVersion: resourcequota.admission.k8s.io/v1alpha1
        kind: Configuration
        limitedResources:
        - resource: persistentvolumeclaims
          matchContains: [gold.storageclass.storage.k8s.io/requests.storage]
    DefaultTolerationSeconds:
      configuration: {apiVersion: v1, kind: DefaultAdmissionConfig, disable: true}
networkConfig:
  externalIPNetworkCIDRs: [192.0.2.0/24, "!192.0.2.128/25"]
`

// template creates a project with a quota, a network policy, and a label that the project's
// requester cannot change.
const template = `
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: project-request, namespace: openshift}
parameters:
- {name: PROJECT_NAME}
- {name: PROJECT_DISPLAYNAME}
- {name: PROJECT_DESCRIPTION}
- {name: PROJECT_ADMIN_USER}
- {name: PROJECT_REQUESTING_USER}
objects:
- apiVersion: v1
  kind: Project
  metadata:
    name: ${PROJECT_NAME}
    labels: {tenants: "yes"}
    annotations:
      openshift.io/display-name: ${PROJECT_DISPLAYNAME}
      openshift.io/description: ${PROJECT_DESCRIPTION}
      openshift.io/requester: ${PROJECT_REQUESTING_USER}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: admin, namespace: "${PROJECT_NAME}"}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "${PROJECT_ADMIN_USER}"}]
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: of-template, namespace: "${PROJECT_NAME}"}
  spec: {hard: {services: "3"}}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: allow-same-namespace, namespace: "${PROJECT_NAME}"}
  spec:
    podSelector:
    ingress:
    - from:
      - podSelector: {}
`

func TestMain(m *testing.M) { kit.MainWith(m, kit.Options{Master: master}) }

// templated ensures that only the first test that uses the cluster creates the project template.
var templated sync.Once

// tenants returns the shared cluster, in which the project template exists.
func tenants(t *testing.T) *kit.Cluster {
	t.Helper()
	c := kit.Shared(t)
	templated.Do(func() { c.In("openshift").Apply(template) })
	return c
}

// requests is the URL path of project requests.
const requests = "/apis/project.openshift.io/v1/projectrequests"

// request returns a ProjectRequest in JSON format.
func request(name string) string {
	return fmt.Sprintf(`{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":%q},"displayName":"A shop","description":"Sells things"}`, name)
}

// has fails the test unless the text contains all of the given parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}

// field returns the value of a top-level field in an object in JSON format.
func field(t *testing.T, object, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields[name])
}
