package deployment

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// rolledOut follows a DeploymentConfig's rollout until it completes, and checks that the given
// version succeeded.
func rolledOut(c *kit.Cluster, t *testing.T, name string, version int) {
	t.Helper()
	want := fmt.Sprintf("replication controller \"%s-%d\" successfully rolled out\n", name, version)
	if got := c.OC("rollout", "status", "dc/"+name); !strings.HasSuffix(got, want) {
		t.Errorf("status is %q, want %q at its end", got, want)
	}
}

func TestRolloutCommandsFollowShowAndUndo(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("web", "replicas: 1", version("one")))
	waitPhase(c, "web-1", "Complete")
	rolledOut(c, t, "web", 1)
	if got := c.OC("exec", "dc/web", "--", "sh", "-c", "echo $VERSION"); got != "one\n" {
		t.Errorf("the pod has version %q", got)
	}
	c.OC("set", "env", "dc/web", "VERSION=two")
	waitPhase(c, "web-2", "Complete")
	rolledOut(c, t, "web", 2)
	c.OC("rollback", "web-1") // the argument is a deployment's name
	waitPhase(c, "web-3", "Complete")
	waitOutput(c, "dc/web", "{.spec.template.spec.containers[0].env[0].value}", "one")
	c.OC("rollout", "undo", "dc/web", "--to-revision=2")
	waitPhase(c, "web-4", "Complete")
	waitOutput(c, "dc/web", "{.spec.template.spec.containers[0].env[0].value}", "two")
	if got := c.OC("rollback", "dc/web", "--to-version=1", "--dry-run", "-o", "jsonpath={.spec.template.spec.containers[0].env[0].value}"); got != "one" {
		t.Errorf("the rollback would restore version %q", got)
	}
	older, err := c.TryOCWithInput(`{"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfigRollback", "name": "web", "spec": {"revision": 1, "includeTemplate": true}}`,
		"create", "-f", "-", "--raw", "/apis/apps.openshift.io/v1/namespaces/"+c.Namespace+"/deploymentconfigrollbacks")
	if err != nil || !strings.Contains(older, `"value":"one"`) || !strings.Contains(older, `"kind":"DeploymentConfig"`) {
		t.Errorf("the response to the request of older clients is %q, %v", older, err)
	}
	history := strings.Fields(c.OC("rollout", "history", "dc/web"))
	if got, want := strings.Join(history, " "), "deploymentconfig.apps.openshift.io/web REVISION STATUS CAUSE 1 Complete config change 2 Complete config change "+
		"3 Complete config change 4 Complete config change"; got != want {
		t.Errorf("history is %q, want %q", got, want)
	}
	if got := c.OC("rollout", "history", "dc/web", "--revision=1"); !strings.Contains(got, "VERSION:\tone") {
		t.Errorf("revision 1 is %q", got)
	}
	if log := c.OC("logs", "dc/web", "--version=2"); !strings.Contains(log, "--> Success") {
		t.Errorf("log of deployment 2, which has no pods, is %q", log)
	}
	if _, err := c.TryOC("logs", "dc/web", "--version=9"); err == nil || !strings.Contains(err.Error(), "invalid version 9") {
		t.Errorf("read the log of a deployment that does not exist: %v", err)
	}
}

func TestRolloutStartsManually(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("hand", "replicas: 1", version("one")))
	waitPhase(c, "hand-1", "Complete")
	if got := c.OC("rollout", "latest", "dc/hand", "--dry-run"); got != "deploymentconfig.apps.openshift.io/hand rolled out (dry run)\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := c.OC("get", "dc", "hand", "-o", "jsonpath={.status.latestVersion}"); got != "1" {
		t.Errorf("after a dry run the latest version is %s", got)
	}
	if got := c.OC("rollout", "latest", "dc/hand"); got != "deploymentconfig.apps.openshift.io/hand rolled out\n" {
		t.Errorf("printed %q", got)
	}
	rolledOut(c, t, "hand", 2)
	if got := c.OC("rollout", "history", "dc/hand"); !strings.Contains(got, "manual change") {
		t.Errorf("history is %q", got)
	}
}

func TestRolloutsArePausedCanceledAndRetried(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("stop", "replicas: 1", version("one")))
	waitPhase(c, "stop-1", "Complete")
	c.OC("rollout", "pause", "dc/stop")
	if _, err := c.TryOC("rollout", "latest", "dc/stop"); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("deployed while paused: %v", err)
	}
	c.OC("set", "probe", "dc/stop", "--readiness", "--period-seconds=1", "--", "test", "-e", "/tmp/ready")
	c.OC("rollout", "resume", "dc/stop")
	waitPhase(c, "stop-2", running)
	c.OC("rollout", "cancel", "dc/stop")
	failed := waitPhase(c, "stop-2", "Failed")
	if failed.Annotations[reason] != "cancelled by the user" {
		t.Errorf("the reason of the failure is %q", failed.Annotations[reason])
	}
	waitReplicas(c, "stop-1", 1)
	waitReplicas(c, "stop-2", 0)
	c.WaitFor("the cancelled rollout to be retried", func(context.Context) error {
		_, err := c.TryOC("rollout", "retry", "dc/stop")
		return err
	})
	c.Exec(onlyPod(c, "deployment=stop-2"), "touch", "/tmp/ready")
	waitPhase(c, "stop-2", "Complete")
}

func TestCommandsOfKubernetesWorkOnDeploymentConfigs(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("set", "replicas: 0, triggers: []", version("one")))
	c.OC("autoscale", "dc/set", "--min=1", "--max=2", "--cpu=80%")
	waitOutput(c, "hpa/set", "{.spec.scaleTargetRef.apiVersion} {.spec.scaleTargetRef.kind} {.spec.scaleTargetRef.name}", "apps.openshift.io/v1 DeploymentConfig set")
	c.OC("set", "image", "dc/set", "main=registry.example.com/app:2")
	c.OC("set", "resources", "dc/set", "--limits=cpu=200m")
	c.OC("env", "dc/set", "VERSION-")
	c.OC("set", "probe", "dc/set", "--liveness", "--open-tcp=8080")
	waitOutput(c, "dc/set", "{range .spec.template.spec.containers[0]}{.image} {.resources.limits.cpu} {.env} {.livenessProbe.tcpSocket.port}{end}",
		"registry.example.com/app:2 200m  8080")
	c.OC("set", "probe", "dc/set", "--liveness", "--remove")
	waitOutput(c, "dc/set", "{.spec.template.spec.containers[0].livenessProbe}", "")
	c.OC("set", "volume", "dc/set", "--add", "--name=data", "--type=persistentVolumeClaim", "--claim-name=data", "--mount-path=/data", "--overwrite")
	const volumes = "{.spec.template.spec.volumes[*]} {.spec.template.spec.containers[0].volumeMounts[*].mountPath}"
	waitOutput(c, "dc/set", volumes, `{"name":"data","persistentVolumeClaim":{"claimName":"data"}} /data`)
	c.OC("set", "volume", "dc/set", "--add", "--name=data", "--type=emptyDir", "--mount-path=/scratch", "--overwrite")
	waitOutput(c, "dc/set", volumes, `{"emptyDir":{},"name":"data"} /scratch`)
	c.OC("expose", "dc/set", "--port=8080")
	waitOutput(c, "service/set", "{.spec.selector} {.spec.ports[*].targetPort}", `{"app":"set"} 8080`)
	c.OC("scale", "dc/set", "--replicas=0")
	c.OC("set", "triggers", "dc/set", "--from-image=app:latest", "-c", "main")
	c.OC("set", "triggers", "dc/set", "--manual")
	if got := strings.Fields(c.OC("set", "triggers", "dc/set")); strings.Join(got, " ") !=
		"NAME TYPE VALUE AUTO deploymentconfigs/set config false deploymentconfigs/set image app:latest (main) false" {
		t.Errorf("triggers are %q", got)
	}
	c.WaitFor("the autoscaler to find the number of pods", func(context.Context) error {
		const able = `jsonpath={.status.conditions[?(@.type=="AbleToScale")].status}`
		got, err := c.TryOC("get", "hpa/set", "-o", able)
		if err == nil && got != "True" {
			err = fmt.Errorf("the condition AbleToScale is %q", got)
		}
		return err
	})
}
