package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestRestartPolicyControlsRestarts(t *testing.T) {
	c := kit.Shared(t)
	const twice = "containers: [{name: main, image: " + kit.ToolsImage + ", command: [sleep, infinity]}, " +
		"{name: failing, image: " + kit.ToolsImage + ", command: [sh, -c, 'exit 3']}]"
	for _, manifest := range []string{
		pod("always", container("exit 0")),
		pod("on-failure", container("exit 1"), "restartPolicy: OnFailure"),
		pod("succeeding", container("echo done"), "restartPolicy: OnFailure"),
		pod("never", container("exit 1"), "restartPolicy: Never"),
		pod("both", twice, "restartPolicy: OnFailure"),
	} {
		makePod(t, c, manifest)
	}
	never := waitPhase(c, "never", corev1.PodFailed)
	if status := never.Status.ContainerStatuses[0]; status.RestartCount != 0 || status.State.Terminated.ExitCode != 1 {
		t.Errorf("never: %+v", status)
	}
	if succeeding := waitPhase(c, "succeeding", corev1.PodSucceeded); succeeding.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("succeeding: %+v", succeeding.Status.ContainerStatuses)
	}
	if log := c.OC("logs", "succeeding"); log != "done\n" {
		t.Errorf("log of a pod that has ended: %q", log)
	}
	for i, delay := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		missing := map[string]bool{"always": true, "on-failure": true}
		c.WaitFor(fmt.Sprintf("back-off of %s", delay), func(context.Context) error {
			maps.DeleteFunc(missing, func(name string, _ bool) bool {
				return backedOff(c.Pod(name).Status.ContainerStatuses[0], int32(i)+2, delay)
			})
			if len(missing) > 0 {
				return fmt.Errorf("not seen: %v", missing)
			}
			return nil
		})
	}
	always := c.Pod("always")
	if always.Spec.RestartPolicy != corev1.RestartPolicyAlways || always.Status.Phase != corev1.PodRunning {
		t.Errorf("always: policy %s, phase %s", always.Spec.RestartPolicy, always.Status.Phase)
	}
	both := c.Pod("both")
	for _, status := range both.Status.ContainerStatuses {
		if restarted := status.RestartCount > 0; restarted != (status.Name == "failing") {
			t.Errorf("container %s was restarted %d times", status.Name, status.RestartCount)
		}
	}
	if both.Spec.NodeName != c.NodeName() {
		t.Errorf("pod is on node %q", both.Spec.NodeName)
	}
}

// backedOff reports whether a container is waiting in the backoff before the given restart, or has
// restarted after this backoff. It checks both states, because the kubelet does not always report
// that a container is waiting.
func backedOff(status corev1.ContainerStatus, restart int32, delay time.Duration) bool {
	if waiting := status.State.Waiting; waiting != nil {
		return waiting.Reason == "CrashLoopBackOff" && strings.HasPrefix(waiting.Message, "back-off "+delay.String())
	}
	last, current := status.LastTerminationState.Terminated, status.State.Terminated
	const precision = time.Second // resolution of the API's timestamps
	return last != nil && current != nil && status.RestartCount == restart && current.StartedAt.Sub(last.FinishedAt.Time) >= delay-precision
}

func TestContainersOfPodShareNetworkAndVolumes(t *testing.T) {
	c := kit.Shared(t)
	mount := "volumeMounts: [{name: www, mountPath: /www}]"
	makePod(t, c, pod("pair", fmt.Sprintf("containers: [{name: writer, image: %s, command: [sh, -c, 'echo shared >/www/index.html; sleep infinity'], %s}, "+
		"{name: server, image: %[1]s, command: [httpd, -f, -p, '8080', -h, /www], %[2]s}]", kit.ToolsImage, mount), "volumes: [{name: www, emptyDir: {}}]"))
	makePod(t, c, pod("rival", container("httpd -f -p 8080")))
	pair := c.WaitPodRunning("pair")
	c.WaitFetch("pair", "http://127.0.0.1:8080/", "shared")
	rival := c.WaitPodRunning("rival") // the port is free because the pod has another address
	if pair.Status.PodIP == rival.Status.PodIP || pair.Spec.NodeName != rival.Spec.NodeName {
		t.Errorf("pods at %s and %s", pair.Status.PodIP, rival.Status.PodIP)
	}
	// Each container must have its own processes and files.
	if processes := c.OC("exec", "pair", "-c", "writer", "--", "ps"); strings.Contains(processes, "httpd") {
		t.Errorf("the other container's process is visible:\n%s", processes)
	}
	c.OC("exec", "pair", "-c", "writer", "--", "touch", "/own")
	if _, err := c.TryOC("exec", "pair", "-c", "server", "--", "ls", "/own"); err == nil {
		t.Error("the other container's file is visible")
	}
}

func TestFailedInitContainers(t *testing.T) {
	c := kit.Shared(t)
	init := func(command string) string {
		return fmt.Sprintf("initContainers: [{name: init, image: %s, command: [sh, -c, %q]}]", kit.ToolsImage, command)
	}
	makePod(t, c, pod("once", sleeper(), init("exit 1"), "restartPolicy: Never"))
	makePod(t, c, pod("again", sleeper(), init("exit 1")))
	makePod(t, c, pod("endless", sleeper(), init("sleep infinity"), "activeDeadlineSeconds: 3"))
	alive := strings.Replace(init("trap exit TERM; while :; do sleep 1; done"), "name: init", "name: init, livenessProbe: {exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1}", 1)
	makePod(t, c, pod("beside", sleeper(), strings.Replace(alive, "name: init", "name: init, restartPolicy: Always", 1)))
	if pod := waitPhase(c, "once", corev1.PodFailed); pod.Status.ContainerStatuses[0].Started != nil && *pod.Status.ContainerStatuses[0].Started {
		t.Error("the container ran although its init container had failed")
	}
	c.WaitFor("another try", func(context.Context) error {
		pod := c.Pod("again")
		if len(pod.Status.InitContainerStatuses) == 0 || pod.Status.InitContainerStatuses[0].RestartCount == 0 {
			return fmt.Errorf("status %+v", pod.Status.InitContainerStatuses)
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				t.Error("the pod is ready")
			}
		}
		return nil
	})
	if endless := waitPhase(c, "endless", corev1.PodFailed); endless.Status.Reason != "DeadlineExceeded" {
		t.Errorf("reason %q", endless.Status.Reason)
	}
	c.WaitFor("a running init container to be restarted by its probe", func(context.Context) error {
		status := c.Pod("beside").Status.InitContainerStatuses
		if len(status) == 0 || status[0].RestartCount == 0 {
			return fmt.Errorf("status %+v", status)
		}
		return nil
	})
	expectRejected(t, c, pod("probed", sleeper(), alive), "may not be set for init containers without restartPolicy=Always")
	probed := strings.Replace(init("true"), "name: init", "name: init, readinessProbe: {exec: {command: ['true']}}", 1)
	expectRejected(t, c, pod("probed", sleeper(), probed), "may not be set for init containers without restartPolicy=Always")
}

func TestPodDefaultsAreSet(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "sa", "robot")
	c.OC("patch", "serviceaccount", "robot", "-p", `{"imagePullSecrets":[{"name":"pull"}]}`)
	makePod(t, c, strings.Replace(pod("x", sleeper("env: [{name: COLOR, value: blue}]", "ports: [{name: web, containerPort: 8080}]",
		"resources: {limits: {cpu: 100m, memory: 32Mi}}", "securityContext: {runAsUser: 1000}"), "serviceAccountName: robot"), "name: x,", "generateName: made-,", 1))
	makePod(t, c, pod("plain", sleeper()))
	makePod(t, c, pod("former", sleeper(), "serviceAccount: robot")) // 3.11's samples use this key
	if got := c.Pod("former").Spec.ServiceAccountName; got != "robot" {
		t.Errorf("a pod with serviceAccount uses the account %q", got)
	}
	result := c.OnlyPod("app=x")
	if !strings.HasPrefix(result.Name, "made-") || len(result.Name) != len("made-")+5 {
		t.Errorf("name %q", result.Name)
	}
	if got := c.Exec(result.Name, "sh", "-c", "echo $COLOR; id -u; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace"); got != "blue\n1000\n"+c.Namespace {
		t.Errorf("in the container: %q", got)
	}
	if result.Spec.DeprecatedServiceAccount != "robot" || !slices.Contains(result.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "pull"}) {
		t.Errorf("service account %q, pull secrets %v", result.Spec.DeprecatedServiceAccount, result.Spec.ImagePullSecrets)
	}
	plain := c.WaitPodRunning("plain").Spec
	got := fmt.Sprint(plain.DNSPolicy, " ", plain.RestartPolicy, " ", plain.ServiceAccountName, " ", plain.SchedulerName, " ", plain.Containers[0].ImagePullPolicy)
	if want := "ClusterFirst Always default default-scheduler IfNotPresent"; got != want {
		t.Errorf("the defaults are %s, want %s", got, want)
	}
	for _, patch := range []string{`{"spec":{"nodeName":"other"}}`, `{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"b"}]}]}}`} {
		if _, err := c.TryOC("patch", "pod", "plain", "-p", patch); err == nil || !strings.Contains(err.Error(), "pod updates may not change fields other than") {
			t.Errorf("patch %s: %v", patch, err)
		}
	}
	expectRejected(t, c, pod("plain", sleeper()), `pods "plain" already exists`)
}

func TestLabelsGroupObjects(t *testing.T) {
	c := kit.Shared(t)
	for name, labels := range map[string]string{"one": "app: web, env: test", "two": "app: web, env: live", "three": "app: db, env: live"} {
		c.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s}}}", name, labels))
	}
	c.Apply("{apiVersion: v1, kind: Secret, metadata: {name: four, labels: {app: web}}}")
	for selector, want := range map[string]string{
		"app=web": "configmap/one configmap/two secret/four", "app==web,env!=test": "configmap/two secret/four", "env in (test, other)": "configmap/one",
		"env notin (test),app": "configmap/three configmap/two secret/four", "app,!env": "secret/four",
	} {
		if got := strings.Join(strings.Fields(c.OC("get", "configmaps,secrets", "-l", selector, "-o", "name")), " "); got != want {
			t.Errorf("-l %q: %s, want %s", selector, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("rules: none"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.OC("create", "configmap", "from-files", "--from-file="+file, "--from-file=key="+file)
	if got := c.OC("get", "configmap", "from-files", "-o", "jsonpath={.data}"); got != `{"key":"rules: none","policy.yaml":"rules: none"}` {
		t.Errorf("created from files: %s", got)
	}
	c.OC("delete", "configmap", "from-files", "not-there", "--ignore-not-found")
	c.OC("delete", "configmaps,secrets", "-l", "app=web")
	list, err := c.Client.CoreV1().ConfigMaps(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "three" {
		t.Errorf("remaining: %v, %v", list.Items, err)
	}
}
