package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// card creates a device file that behaves like /dev/zero.
func card(t *testing.T, path string) {
	t.Helper()
	device := unix.Mkdev(1, 5)
	// Change the mode explicitly, because the test's umask affects the mode that mknod sets.
	if err := errors.Join(unix.Mknod(path, unix.S_IFCHR, int(device)), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
}

// waitCards waits until a node has the given number of allocatable cards.
func waitCards(c *kit.Cluster, node, want string) {
	c.WaitFor(want+" cards of node "+node, func(ctx context.Context) error {
		object, err := c.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := object.Status.Allocatable["example.com/card"]; got.String() != want {
			return fmt.Errorf("it has %s", got.String())
		}
		return nil
	})
}

// installDevicePlugin installs the example plugin for the device files in a directory.
func installDevicePlugin(t *testing.T, c *kit.Cluster, cards string) {
	t.Helper()
	example := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(c.RepositoryFile("examples", "device-plugin", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "device-plugin"), c.RepositoryFile("examples", "device-plugin"))
	build.Dir = c.RepositoryFile()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, output)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(example("Dockerfile")), 0o644); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag=localhost/device-plugin:1", dir)
	c.In("device-plugin-example").Apply(strings.NewReplacer("/dev/card*", cards+"/card*", "mountPath: /dev\n", "mountPath: "+cards+"\n", "path: /dev\n", "path: "+cards+"\n").Replace(example("plugin.yaml")))
	t.Cleanup(func() { c.OC("delete", "namespace", "device-plugin-example") })
}

// TestDevicePluginGivesDevicesToPods installs the example plugin with two devices. It then lets one
// device fail, and restarts the plugin and the node process.
func TestDevicePluginGivesDevicesToPods(t *testing.T) {
	c := kit.Shared(t)
	name, cards := c.NodeName(), t.TempDir()
	card(t, filepath.Join(cards, "card0"))
	card(t, filepath.Join(cards, "card1"))
	installDevicePlugin(t, c, cards)
	waitCards(c, name, "2")

	c.OC("create", "quota", "cards", "--hard=requests.example.com/card=1")
	waitUsed(c, "cards", "requests.example.com/card=0")
	user := func(name string) string { return pod(name, sleeper("resources: {limits: {example.com/card: 1}}")) }
	c.Apply(user("first") + "---" + pod("without", sleeper()))
	c.WaitPodRunning("first")
	c.WaitPodRunning("without")
	expectRejected(t, c, user("second"), "exceeded quota: cards, requested: requests.example.com/card=1")
	c.OC("patch", "quota", "cards", "-p", `{"spec":{"hard":{"requests.example.com/card":"3"}}}`)
	c.WaitFor("admission of the second pod", func(context.Context) error { return create(t, c, user("second")) })
	c.WaitPodRunning("second")
	devices := func(pod string) string {
		t.Helper()
		return strings.TrimSpace(c.Exec(pod, "sh", "-c", "stat -c '%n %t:%T' /dev/card*; head -c 2 /dev/card* | od -An -tx1"))
	}
	first, second := devices("first"), devices("second")
	if first == second || !strings.HasPrefix(first, "/dev/card") || strings.Count(first+second, " 1:5\n 00 00") != 2 {
		t.Errorf("the pods have the devices %q and %q", first, second)
	}
	if output, err := c.TryOC("exec", "without", "--", "sh", "-c", "ls /dev/card*"); err == nil {
		t.Errorf("a pod without a card can access %s", output)
	}
	makePod(t, c, user("third"))
	wantPlace(t, c, "third", "")
	waitEvent(c, c.Namespace, "third", "FailedScheduling", "Insufficient example.com/card")

	deviceFails(t, c, name, filepath.Join(cards, strings.TrimPrefix(strings.Fields(second)[0], "/dev/")))
	pluginAndNodeRestart(c, name)
	if got := devices("first"); got != first {
		t.Errorf("after the restarts, the pod has %q, and had %q before", got, first)
	}
	if starts := c.Pod("first").Status.ContainerStatuses[0].RestartCount; starts != 0 {
		t.Errorf("the pod restarted %d times", starts)
	}
	c.OC("delete", "pod", "second")
	c.WaitPodRunning("third")
	if got := devices("third"); got != second {
		t.Errorf("the third pod has %q, want the device of the second pod, %q", got, second)
	}
}

// deviceFails removes the device that is allocated to the pod "second", and then recreates it.
func deviceFails(t *testing.T, c *kit.Cluster, node, path string) {
	t.Helper()
	waitHealth := func(want corev1.ResourceHealthStatus) {
		t.Helper()
		c.WaitFor(fmt.Sprintf("device of the pod to be %s", want), func(context.Context) error {
			status := c.Pod("second").Status.ContainerStatuses[0].AllocatedResourcesStatus
			if len(status) != 1 || len(status[0].Resources) != 1 || status[0].Resources[0].Health != want {
				return fmt.Errorf("the status is %v", status)
			}
			return nil
		})
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	waitCards(c, node, "1")
	waitHealth(corev1.ResourceHealthStatusUnhealthy)
	card(t, path)
	waitCards(c, node, "2")
	waitHealth(corev1.ResourceHealthStatusHealthy)
}

// pluginAndNodeRestart restarts the plugin, and then the node process.
func pluginAndNodeRestart(c *kit.Cluster, node string) {
	plugin := c.In("device-plugin-example")
	plugin.OC("patch", "daemonset", "device-plugin", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"has":"no-node"}}}}}`)
	waitCards(c, node, "0")
	plugin.OC("patch", "daemonset", "device-plugin", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"has":null}}}}}`)
	waitCards(c, node, "2")

	before := c.Status().PID("node")
	c.Kill("node")
	c.WaitRestart("node", before)
	// Do not rely on the Node's status, because the previous process might have written it.
	c.WaitFor("second registration of the plugin", func(context.Context) error {
		log, err := plugin.TryOC("logs", "daemonset/device-plugin")
		if err == nil && strings.Count(log, "plugin is registered") != 2 {
			err = fmt.Errorf("the log of the plugin is %s", log)
		}
		return err
	})
	waitCards(c, node, "2")
}
