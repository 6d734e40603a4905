package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	appsGroup  = "apps.openshift.io"
	buildGroup = "build.openshift.io"
	imageGroup = "image.openshift.io"
)

// privateImage creates the image stream "app" in the victim's project. The stream's tag "latest"
// refers to an image in registry.example.com, whose digest privateImage returns.
func (s *stage) privateImage(digit string) (digest string) {
	digest = "sha256:" + strings.Repeat(digit, 64)
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreams"), "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: app}}")
	s.Administrator().May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), fmt.Sprintf(`
{apiVersion: image.openshift.io/v1, kind: ImageStreamMapping, metadata: {name: app}, tag: latest, image: {metadata: {name: %q},
 dockerImageReference: registry.example.com/shop/app@%[1]s, dockerImageMetadata: {kind: DockerImage, apiVersion: "1.0", Config: {Env: [PASSWORD=secret]}}}}`, digest))
	return digest
}

// followers returns Mallory's objects that have triggers for the tag app:latest in the given
// project, keyed by path.
func (s *stage) followers(of string) map[string]string {
	pod := "{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'none.example.com/a:1'}]}}"
	annotation := func(path string) string {
		return fmt.Sprintf(`image.openshift.io/triggers: '[{"from": {"kind": "ImageStreamTag", "name": "app:latest", "namespace": %q}, "fieldPath": "%s.containers[0].image"}]'`, of, path)
	}
	workload := func(kind, spec string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: %s, metadata: {name: thief, annotations: {%s}}, spec: {%s selector: {matchLabels: {app: a}}, template: %s}}",
			kind, annotation("spec.template.spec"), spec, pod)
	}
	from := fmt.Sprintf("{kind: ImageStreamTag, name: 'app:latest', namespace: %s}", of)
	return map[string]string{
		kit.GroupPath(appsGroup, s.evil, "deploymentconfigs"): fmt.Sprintf(`{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: thief}, spec: {replicas: 0,
			selector: {app: a}, template: %s, triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [a], from: %s}}]}}`, pod, from),
		kit.GroupPath("apps", s.evil, "deployments"):  workload("Deployment", "replicas: 0,"),
		kit.GroupPath("apps", s.evil, "statefulsets"): workload("StatefulSet", "replicas: 0,"),
		kit.GroupPath("apps", s.evil, "daemonsets"):   strings.Replace(workload("DaemonSet", ""), "spec: {containers", "spec: {nodeSelector: {none: none}, containers", 1),
		kit.GroupPath("batch", s.evil, "cronjobs"): fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: thief, annotations: {%s}}, spec: {schedule: "0 0 1 1 *", suspend: true,
			jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'none.example.com/a:1'}]}}}}}}`, annotation("spec.jobTemplate.spec.template.spec")),
		kit.GroupPath(buildGroup, s.evil, "buildconfigs"): fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: thief}, spec: {source: {dockerfile: "FROM none"},
			strategy: {dockerStrategy: {from: %s}}, triggers: [{type: ImageChange, imageChange: {}}]}}`, from),
	}
}

func TestTriggerCannotReadImageStreamOfAnotherProject(t *testing.T) {
	s := tenants(t)
	digest := s.privateImage("1")
	followers := s.followers(s.shop)
	for path, body := range followers {
		s.mallory.May("POST", path, body)
	}
	s.WaitFor("an event that explains why the triggers have no effect", func(context.Context) error {
		events := s.mallory.May("GET", kit.CorePath(s.evil, "events"), "")
		for _, kind := range []string{"DeploymentConfig", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "BuildConfig"} {
			if !strings.Contains(s.OC("get", "events", "-n", s.evil, "--field-selector=reason=ImageTriggerForbidden,involvedObject.kind="+kind, "-o", "name"), "/") {
				return fmt.Errorf("the %s has no event:\n%s", kind, events)
			}
		}
		return nil
	})
	for _, kind := range []string{"deploymentconfigs." + appsGroup, "deployments.apps", "daemonsets.apps"} {
		got := s.OC("get", kind, "thief", "-n", s.evil, "-o", `jsonpath={.status.conditions[?(@.type=="ImageTriggersAllowed")].reason}`)
		if got != "ImageTriggerForbidden" {
			t.Errorf("the condition of %s has the reason %q", kind, got)
		}
	}
	s.mallory.MayNot("POST", kit.GroupPath(appsGroup, s.evil, "deploymentconfigs/thief/instantiate"),
		"{apiVersion: apps.openshift.io/v1, kind: DeploymentRequest, name: thief, latest: true, force: true}", "may not pull from image stream")
	if response, err := s.mallory.Try("POST", kit.GroupPath(buildGroup, s.evil, "buildconfigs/thief/instantiate"),
		"{apiVersion: build.openshift.io/v1, kind: BuildRequest, metadata: {name: thief}}"); err == nil || strings.Contains(response, digest) {
		t.Errorf("a build is created: %s", response)
	}
	for path := range followers {
		if object := s.mallory.May("GET", path+"/thief", ""); strings.Contains(object, digest) {
			t.Errorf("the object has the image of another project:\n%s", object)
		}
	}
	// When Mallory removes the triggers, the conditions must be removed, too.
	s.mallory.May("PATCH", kit.GroupPath("apps", s.evil, "deployments/thief"), `{"metadata":{"annotations":{"image.openshift.io/triggers":null}}}`)
	s.mallory.May("PATCH", kit.GroupPath(appsGroup, s.evil, "deploymentconfigs/thief"), `{"spec":{"triggers":[]}}`)
	s.WaitFor("the conditions to be removed", func(context.Context) error {
		for _, path := range []string{kit.GroupPath("apps", s.evil, "deployments/thief"), kit.GroupPath(appsGroup, s.evil, "deploymentconfigs/thief")} {
			if object := s.mallory.May("GET", path, ""); strings.Contains(object, "ImageTriggersAllowed") {
				return fmt.Errorf("there is\n%s", object)
			}
		}
		return nil
	})
}

func TestTriggerWithRightReadsImageStreamOfOtherProject(t *testing.T) {
	s := tenants(t)
	digest := s.privateImage("2")
	s.OC("policy", "add-role-to-group", "system:image-puller", "system:serviceaccounts:"+s.evil, "-n", s.shop)
	followers := s.followers(s.shop)
	for path, body := range followers {
		s.mallory.May("POST", path, body)
	}
	for path := range followers {
		s.WaitFor("the image in "+path, func(context.Context) error {
			if object := s.mallory.May("GET", path+"/thief", ""); !strings.Contains(object, digest) {
				return fmt.Errorf("the object does not have the image:\n%s", object)
			}
			return nil
		})
	}
}

func TestTriggerErrorDoesNotRevealImageStreams(t *testing.T) {
	s := tenants(t)
	s.privateImage("3")
	refusal := func(stream string) string {
		body := strings.ReplaceAll(s.followers(s.shop)[kit.GroupPath(appsGroup, s.evil, "deploymentconfigs")], "app:latest", stream+":latest")
		s.mallory.May("POST", kit.GroupPath(appsGroup, s.evil, "deploymentconfigs"), strings.ReplaceAll(body, "name: thief", "name: "+stream))
		response, err := s.mallory.Try("POST", kit.GroupPath(appsGroup, s.evil, "deploymentconfigs/"+stream+"/instantiate"),
			fmt.Sprintf("{apiVersion: apps.openshift.io/v1, kind: DeploymentRequest, name: %s, latest: true, force: true}", stream))
		if err == nil {
			t.Errorf("a deployment of %q is created", stream)
		}
		return strings.ReplaceAll(response, stream, "STREAM")
	}
	if existing, missing := refusal("app"), refusal("gone"); existing != missing {
		t.Errorf("the errors differ:\n%s\n%s", existing, missing)
	}
}
