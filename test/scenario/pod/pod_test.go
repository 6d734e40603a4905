// Package pod tests the features that a node provides to pods: lifecycle, volumes, and the commands
// that inspect pods.
package pod

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) {
	kit.MainWith(m, kit.Options{Node: nameservers + "\niptablesSyncPeriod: 3s", Segment: true})
}

// server returns a pod that serves its name over HTTP on port 8080 and logs every request.
func server(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels: {app: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[2]s
    command: [sh, -c, "mkdir /tmp/www && echo I am $(hostname) >/tmp/www/index.html && exec httpd -f -vv -p 8080 -h /tmp/www"]
    readinessProbe:
      httpGet: {path: /, port: 8080}
      periodSeconds: 1
`, name, kit.ToolsImage)
}

// task returns a pod that runs until it is deleted, so that tests can execute commands in it.
func task(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: task
    image: %s
    command: [sleep, infinity]
`, name, kit.ToolsImage)
}

func TestExecReturnsOutputAndExitCode(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(task("task"))
	c.WaitPodRunning("task")
	if output := c.Exec("task", "echo", "hello"); output != "hello\n" {
		t.Errorf("output %q", output)
	}
	if _, err := c.TryOC("exec", "task", "--", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("a command that ends with 7: %v", err)
	}
}

func TestLogsContainOutput(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.WaitPodRunning("web")
	c.Exec("web", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/")
	c.WaitFor("the request in the log", func(context.Context) error {
		log, err := c.TryOC("logs", "web")
		if err == nil && !strings.Contains(log, "127.0.0.1") {
			err = fmt.Errorf("log %q", log)
		}
		return err
	})
}

func TestAttachFollowsOutput(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(strings.Replace(task("clock"), "[sleep, infinity]", `[sh, -c, "while sleep 1; do echo tick; done"]`, 1))
	c.WaitPodRunning("clock")
	line, err := c.StartOC("attach", "clock").ReadString('\n')
	if err != nil || line != "tick\n" {
		t.Errorf("attached and read %q, error %v", line, err)
	}
}

func TestPortForwardReachesPod(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(server("web"))
	c.WaitPodRunning("web")
	line, err := c.StartOC("port-forward", "pod/web", ":8080").ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscanf(line, "Forwarding from 127.0.0.1:%d", &port); err != nil {
		t.Fatalf("oc port-forward printed %q: %v", line, err)
	}
	if page := fetch(t, c, fmt.Sprintf("127.0.0.1:%d", port)); page != "I am web\n" {
		t.Errorf("page %q", page)
	}
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(task("task"))
	c.WaitPodRunning("task")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.OC("cp", filepath.Join(dir, "in"), "task:/tmp/file")
	c.OC("cp", "task:/tmp/file", filepath.Join(dir, "out"))
	if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != "content" {
		t.Errorf("copied out %q, error %v", out, err)
	}
}

func TestLivenessProbeRestartsContainer(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(strings.Replace(task("fragile"), "[sleep, infinity]", `[sh, -c, "touch /tmp/alive && sleep infinity"]
    livenessProbe:
      exec: {command: [cat, /tmp/alive]}
      periodSeconds: 1
      failureThreshold: 2`, 1))
	before := c.WaitPodRunning("fragile").Status.ContainerStatuses[0].ContainerID
	c.Exec("fragile", "rm", "/tmp/alive")
	c.WaitFor("restart", func(context.Context) error {
		status := c.Pod("fragile").Status.ContainerStatuses[0]
		if status.RestartCount != 1 || status.State.Running == nil || status.ContainerID == before {
			return fmt.Errorf("restarts %d, state %+v", status.RestartCount, status.State)
		}
		return nil
	})
}

func TestInitContainersRunInOrderBeforeOthers(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: prepared
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - {name: first, image: %[1]s, command: [sh, -c, "echo first >>/shared/order"], volumeMounts: [{name: shared, mountPath: /shared}]}
  - {name: second, image: %[1]s, command: [sh, -c, "echo second >>/shared/order"], volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - {name: main, image: %[1]s, command: [sleep, infinity], volumeMounts: [{name: shared, mountPath: /shared}]}
`, kit.ToolsImage))
	c.WaitPodRunning("prepared")
	if order := c.Exec("prepared", "cat", "/shared/order"); order != "first\nsecond\n" {
		t.Errorf("order %q", order)
	}
}

func TestVolumesContainObjects(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {password: hunter2}
`)
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: reader
  labels: {app: reader}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: reader
    image: %s
    command: [sleep, infinity]
    env:
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
    volumeMounts:
    - {name: settings, mountPath: /settings}
    - {name: key, mountPath: /key}
    - {name: all, mountPath: /all}
    - {name: memory, mountPath: /memory}
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: key, secret: {secretName: key, defaultMode: 0400}}
  - {name: memory, emptyDir: {medium: Memory}}
  - name: all
    projected:
      sources:
      - configMap: {name: settings}
      - secret: {name: key}
      - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
      - serviceAccountToken: {path: token}
`, kit.ToolsImage))
	c.WaitPodRunning("reader")
	for script, want := range map[string]string{
		"cat /settings/color":                    "blue",
		"cat /key/password":                      "hunter2",
		"stat -L -c %a /key/password":            "400\n",
		"cat /all/color /all/password":           "bluehunter2",
		"cat /all/labels":                        `app="reader"`,
		"test -s /all/token && echo present":     "present\n",
		"grep -c ' /memory tmpfs ' /proc/mounts": "1\n",
		"echo $COLOR":                            "blue\n",
	} {
		if got := c.Exec("reader", "sh", "-c", script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func TestServiceAccountTokenAuthenticates(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(task("task"))
	c.WaitPodRunning("task")
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = c.Exec("task", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	config.Dial = c.Dial
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + c.Namespace + ":default"; review.Status.UserInfo.Username != want {
		t.Errorf("the token's user is %q, want %q", review.Status.UserInfo.Username, want)
	}
	// Only open a TCP connection, because the API server does not accept the TLS versions that
	// busybox supports.
	c.Exec("task", "timeout", "5", "sh", "-c", "nc kubernetes.default.svc 443 </dev/null")
}
