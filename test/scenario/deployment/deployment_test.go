// Package deployment tests that DeploymentConfigs are deployed as in OpenShift 3.
package deployment

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// configuration returns a DeploymentConfig whose pods sleep. spec contains additional fields for
// its spec, and container contains additional fields for its container.
func configuration(name, spec, container string) string {
	return fmt.Sprintf(`{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: %[1]s}, spec: {%[2]s, selector: {app: %[1]s}, template: {
		metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: %[4]q, command: [sleep, "100000"], %[3]s}]}}}}`,
		name, spec, container, kit.ToolsImage)
}

// version returns an environment variable that makes a container differ from its previous version.
func version(v string) string { return "env: [{name: VERSION, value: " + v + "}]" }

// deployment returns a deployment's ReplicationController.
func deployment(ctx context.Context, c *kit.Cluster, name string) (*corev1.ReplicationController, error) {
	return c.Client.CoreV1().ReplicationControllers(c.Namespace).Get(ctx, name, metav1.GetOptions{})
}

const (
	phase   = "openshift.io/deployment.phase"
	reason  = "openshift.io/deployment.status-reason"
	running = "Running"
)

// waitPhase waits until a deployment is in the given phase.
func waitPhase(c *kit.Cluster, name, want string) (rc *corev1.ReplicationController) {
	c.WaitFor("deployment "+name+" to be "+want, func(ctx context.Context) (err error) {
		if rc, err = deployment(ctx, c, name); err == nil && rc.Annotations[phase] != want {
			err = fmt.Errorf("it is %s: %s", rc.Annotations[phase], rc.Annotations[reason])
		}
		return err
	})
	return rc
}

// waitReplicas waits until a deployment requests the given number of pods, and all of them are
// available.
func waitReplicas(c *kit.Cluster, name string, want int32) {
	c.WaitFor(fmt.Sprintf("deployment %s to have %d pods", name, want), func(ctx context.Context) error {
		rc, err := deployment(ctx, c, name)
		if err == nil && (*rc.Spec.Replicas != want || rc.Status.AvailableReplicas != want) {
			err = fmt.Errorf("the deployment requests %d pods and has %d", *rc.Spec.Replicas, rc.Status.AvailableReplicas)
		}
		return err
	})
}

// waitOutput waits until a field of an object has the expected value.
func waitOutput(c *kit.Cluster, object, path, want string) {
	c.WaitFor(object+" to have "+path+" "+want, func(context.Context) error {
		got, err := c.TryOC("get", object, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

func TestTemplateChangeIsDeployed(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("web", "replicas: 2, revisionHistoryLimit: 1", version("one")))
	first := waitPhase(c, "web-1", "Complete")
	for name, want := range map[string]string{
		"openshift.io/deployment-config.name": "web", "openshift.io/deployment-config.latest-version": "1",
		"openshift.io/deployer-pod.name": "web-1-deploy", reason: "config change",
	} {
		if got := first.Annotations[name]; got != want {
			t.Errorf("annotation %s is %q, want %q", name, got, want)
		}
	}
	if first.Labels["openshift.io/deployment-config.name"] != "web" || first.Spec.Selector["deployment"] != "web-1" ||
		first.Spec.Template.Labels["deploymentconfig"] != "web" || !strings.Contains(first.Annotations["openshift.io/encoded-deployment-config"], `"DeploymentConfig"`) {
		t.Errorf("deployment is %+v", first)
	}
	deployer := c.Pod("web-1-deploy")
	if deployer.Spec.ServiceAccountName != "deployer" || deployer.Labels["openshift.io/deployer-pod-for.name"] != "web-1" ||
		deployer.Annotations["openshift.io/scc"] != "restricted" || deployer.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("deployer is %+v", deployer)
	}
	waitOutput(c, "dc/web", `{.status.latestVersion} {.status.availableReplicas} {.status.details.causes[*].type} {.status.conditions[?(@.type=="Progressing")].reason}`,
		"1 2 ConfigChange NewReplicationControllerAvailable")

	// The deployment's pod count must follow the DeploymentConfig, and the next deployment must
	// keep it.
	c.OC("scale", "dc/web", "--replicas=3")
	waitReplicas(c, "web-1", 3)
	c.Apply(configuration("web", "replicas: 3, revisionHistoryLimit: 1", version("two")))
	waitPhase(c, "web-2", "Complete")
	waitReplicas(c, "web-2", 3)
	waitReplicas(c, "web-1", 0)
	c.Apply(configuration("web", "replicas: 3, revisionHistoryLimit: 1", version("three")))
	waitPhase(c, "web-3", "Complete")
	c.WaitFor("the oldest deployment to be removed with its deployer", func(context.Context) error {
		if got := c.OC("get", "rc,pods", "-o", "name", "-l", "app!=web"); strings.Contains(got, "web-1") {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
}

func TestNewImageIsDeployed(t *testing.T) {
	c := kit.Shared(t)
	c.Apply("{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: app}}")
	c.Apply(configuration("app", `replicas: 1, triggers: [{type: ConfigChange}, {type: ImageChange, imageChangeParams: {
		automatic: true, containerNames: [main], from: {kind: ImageStreamTag, name: "app:latest"}}}]`, version("one")))
	push := func(digit, reference string) {
		t.Helper()
		id := "sha256:" + strings.Repeat(digit, 64)
		body := fmt.Sprintf(`{"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping", "metadata": {"name": "app"}, "tag": "latest",
			"image": {"metadata": {"name": %q}, "dockerImageReference": %q}}`, id, reference)
		path := "/apis/image.openshift.io/v1/namespaces/" + c.Namespace + "/imagestreammappings"
		if err := c.Client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.OC("delete", "image", id, "--ignore-not-found") })
	}
	// The DeploymentConfig waits for an image before its first deployment.
	waitOutput(c, "dc/app", "{.status.observedGeneration} {.status.latestVersion}", "1 0")
	push("a", "localhost/missing:1")
	waitPhase(c, "app-1", running)
	push("b", kit.ToolsImage)
	waitPhase(c, "app-2", "Complete")
	first := waitPhase(c, "app-1", "Failed")
	if first.Annotations[reason] != "newer deployment was found running" {
		t.Errorf("the first deployment failed because of %q", first.Annotations[reason])
	}
	waitReplicas(c, "app-1", 0)
	waitOutput(c, "dc/app", "{.spec.template.spec.containers[0].image} {.spec.triggers[1].imageChangeParams.lastTriggeredImage} {.status.details.causes[*].type}",
		kit.ToolsImage+" "+kit.ToolsImage+" ImageChange")
}

func TestKilledDeployerContinues(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(configuration("slow", "replicas: 1", `readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1}`))
	waitPhase(c, "slow-1", running)
	pod := onlyPod(c, "app=slow")
	c.WaitFor("the deployer to be killed", func(context.Context) error { return killDeployer("slow-1", c.Namespace) })
	c.WaitFor("the deployer to run again", func(context.Context) error {
		deployer := c.Pod("slow-1-deploy")
		for _, status := range deployer.Status.ContainerStatuses {
			if status.RestartCount == 1 && status.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", deployer.Status)
	})
	c.Kill("control-plane") // meanwhile, the deployer waits for the next pod
	c.WaitFor("the pod to become ready", func(context.Context) error {
		_, err := c.TryOC("exec", pod, "--", "touch", "/tmp/ready")
		return err
	})
	waitPhase(c, "slow-1", "Complete")
	waitReplicas(c, "slow-1", 1)
}

func TestFailedHookKeepsPreviousPods(t *testing.T) {
	c := kit.Shared(t)
	hook := func(policy, script string) string {
		return fmt.Sprintf("{failurePolicy: %s, execNewPod: {containerName: main, command: [sh, -c, %q], env: [{name: STAGE, value: hook}]}}", policy, script)
	}
	strategy := func(pre, mid, post string) string {
		return fmt.Sprintf("replicas: 1, strategy: {type: Recreate, recreateParams: {pre: %s, mid: %s, post: %s}}", pre, mid, post)
	}
	say := hook("Abort", "echo $STAGE of $VERSION for $OPENSHIFT_DEPLOYMENT_NAME")
	tag := `{failurePolicy: Abort, tagImages: [{containerName: main, to: {kind: ImageStreamTag, name: "released:now"}}]}`
	c.Apply(configuration("hooked", strategy(say, hook("Ignore", "exit 1"), tag), version("one")))
	waitPhase(c, "hooked-1", "Complete")
	log := c.OC("logs", "hooked-1-deploy")
	for _, want := range []string{"pre: Running hook pod", "hook of one for hooked-1", "pre: Success", "mid: Failed, which is ignored", "post: Success"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not contain %q:\n%s", want, log)
		}
	}
	waitOutput(c, "is/released", "{.spec.tags[*].name} {.spec.tags[*].from.name}", "now "+kit.ToolsImage)

	c.Apply(configuration("hooked", strategy("null", hook("Abort", "exit 1"), "null"), version("two")))
	waitPhase(c, "hooked-2", "Failed")
	waitReplicas(c, "hooked-1", 1)
	waitReplicas(c, "hooked-2", 0)
	waitOutput(c, "dc/hooked", `{.status.conditions[?(@.type=="Progressing")].reason}`, "ProgressDeadlineExceeded")
}
