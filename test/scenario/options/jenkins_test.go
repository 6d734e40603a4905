package options

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// jenkinsSettings provisions a Jenkins server for projects with pipelines.
const jenkinsSettings = `
jenkinsPipelineConfig: {autoProvisionEnabled: true, templateNamespace: openshift, templateName: shop-jenkins, serviceName: shop-ci, parameters: {MEMORY: 2Gi}}
`

// jenkinsTemplate contains only those objects of a Jenkins server that matter for this test.
const jenkinsTemplate = `
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: shop-jenkins, namespace: openshift}
parameters: [{name: MEMORY, value: 1Gi}, {name: SERVICE, value: shop-ci}]
objects:
- {apiVersion: v1, kind: Service, metadata: {name: "${SERVICE}"}, spec: {selector: {name: jenkins}, ports: [{port: 80}]}}
- apiVersion: apps.openshift.io/v1
  kind: DeploymentConfig
  metadata: {name: jenkins}
  spec:
    replicas: 0
    selector: {name: jenkins}
    triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [jenkins], from: {kind: ImageStreamTag, namespace: openshift, name: "shop-jenkins:2"}}}]
    template: {metadata: {labels: {name: jenkins}}, spec: {containers: [{name: jenkins, image: " "}]}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings-of-jenkins}, data: {memory: "${MEMORY}"}}
`

const pipelineConfig = `{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {strategy: {jenkinsPipelineStrategy: {jenkinsfile: "node { }"}}}}`

func TestFirstPipelineOfProjectInstantiatesJenkins(t *testing.T) {
	c := kit.Shared(t)
	developer := c.User("developer")
	developer.RequestProject(c, "ci")
	configs := "/apis/build.openshift.io/v1/namespaces/ci/buildconfigs"
	developer.MayNot("POST", configs, fmt.Sprintf(pipelineConfig, "early"), `"shop-jenkins" not found`)
	c.In("openshift").Apply(jenkinsTemplate)
	t.Cleanup(func() { c.OC("delete", "template", "shop-jenkins", "-n", "openshift") })
	ci := c.In("ci")
	developer.May("POST", configs+"?", fmt.Sprintf(pipelineConfig, "dry"))
	developer.May("POST", configs, `{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: image}, spec: {strategy: {dockerStrategy: {}}, source: {dockerfile: FROM scratch}}}`)
	if got := ci.OC("get", "templateinstances", "-o", "name"); got != "" {
		t.Errorf("without a pipeline, the project has %s", got)
	}
	// Without a Jenkins image, Slipway's own runner runs the pipeline. The reason shows that the
	// runner's image is also missing.
	developer.May("POST", configs, fmt.Sprintf(pipelineConfig, "own"))
	developer.May("POST", configs+"/own/instantiate", `{apiVersion: build.openshift.io/v1, kind: BuildRequest, metadata: {name: own}}`)
	ci.WaitFor("the runner to take the pipeline", func(context.Context) error {
		got := ci.OC("get", "build", "own-1", "-o", "jsonpath={.status.reason}") + ci.OC("get", "templateinstances", "-o", "name")
		if got != "InvalidImageReference" {
			return fmt.Errorf("without an image of Jenkins, the project has %q", got)
		}
		return nil
	})
	c.MustSlipway("images", "publish", kit.ToolsImage, "openshift/shop-jenkins:2")
	t.Cleanup(func() { c.OC("delete", "imagestream", "shop-jenkins", "-n", "openshift") })
	developer.May("POST", configs, fmt.Sprintf(pipelineConfig, "first"))
	ci.WaitFor("Jenkins of the project", func(context.Context) error {
		_, err := ci.TryOC("wait", "templateinstance/shop-ci", "--for=condition=Ready", "--timeout=30s")
		return err
	})
	if got := ci.OC("get", "service/shop-ci", "configmap/settings-of-jenkins", "-o", "jsonpath={.items[*].data.memory}"); got != "2Gi" {
		t.Errorf("the memory of Jenkins is %q", got)
	}
	if got := ci.OC("get", "templateinstance", "shop-ci", "-o", "jsonpath={.spec.requester.username}"); got != "developer" {
		t.Errorf("the requester is %q", got)
	}
	developer.May("POST", configs, fmt.Sprintf(pipelineConfig, "second"))
	developer.May("POST", configs+"/second/instantiate", `{apiVersion: build.openshift.io/v1, kind: BuildRequest, metadata: {name: second}}`)
	if got := ci.OC("get", "templateinstances", "-o", "name"); strings.Count(got, "\n") != 1 {
		t.Errorf("after the second pipeline, the project has %s", got)
	}
	if got := ci.OC("get", "build", "second-1", "-o", "jsonpath={.status.phase}"); got != "New" {
		t.Errorf("the status of the build without Jenkins is %s", got)
	}
}
