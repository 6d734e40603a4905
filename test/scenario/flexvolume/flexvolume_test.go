// Package flexvolume tests Slipway's main purpose. An application stores data on a FlexVolume
// volume, and the data remains when the application's pods are deleted and rescheduled. The driver
// comes from the examples.
package flexvolume

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// These are the names in the example.
const (
	namespace = "flexvolume-example"
	volume    = "flexvolume-example"
	selector  = "app=page"
	service   = "http://page." + namespace + "/"
)

// example returns the example's manifest with this cluster's directories, so that the test does not
// affect another cluster on the machine.
func example(t *testing.T, c *kit.Cluster, data string) string {
	t.Helper()
	files, err := filepath.Glob(c.RepositoryFile("examples", "flexvolume", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("find the example: %v, error %v", files, err)
	}
	var documents []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(content))
	}
	manifest := strings.Join(documents, "\n---\n")
	for _, change := range []struct{ old, new string }{
		{"path: /usr/libexec/kubernetes/kubelet-plugins/volume/exec\n", "path: " + c.VolumePluginDir + "\n"},
		{"    options:\n", "    options:\n      directory: " + data + "\n"},
	} {
		if strings.Count(manifest, change.old) != 1 {
			t.Fatalf("the example does not contain %q exactly once", change.old)
		}
		manifest = strings.Replace(manifest, change.old, change.new, 1)
	}
	return manifest
}

func TestPageSurvivesDeletionAndReschedulingOfPod(t *testing.T) {
	c := kit.Shared(t)
	c.Namespace = namespace
	data := t.TempDir()
	manifest := example(t, c, data)
	c.Apply(manifest)
	first := c.OnlyPod(selector)
	waitPage(c, first.Name, "served by 1 pods", first.Name)

	c.OC("delete", "pod", "-l", selector)
	second := c.OnlyPod(selector)
	if second.Name == first.Name {
		t.Fatalf("pod %s was not replaced", first.Name)
	}
	waitPage(c, second.Name, "served by 2 pods", first.Name, second.Name)

	c.OC("scale", "deployment", "page", "--replicas", "0")
	waitReleased(c, data)
	c.OC("scale", "deployment", "page", "--replicas", "1")
	third := c.OnlyPod(selector)
	waitPage(c, third.Name, "served by 3 pods", first.Name, second.Name, third.Name)

	current := c.OC("get", "persistentvolume", volume, "-o", "jsonpath={.spec.flexVolume.driver}")
	if current != "example.com/loop" {
		t.Errorf("the stored volume's driver is %q: objects must keep the user's values", current)
	}
	c.OC("delete", "deployment", "page")
	waitReleased(c, data)
	if image := filepath.Join(data, volume+".img"); !exists(image) {
		t.Errorf("%s does not exist: the volume's data must outlive the application", image)
	}
}

// waitPage waits until the page that a pod fetches from the service contains all of the given
// texts.
func waitPage(c *kit.Cluster, pod string, texts ...string) {
	for _, text := range texts {
		c.WaitFetch(pod, service, text)
	}
}

// waitReleased waits until the machine no longer uses the volume.
func waitReleased(c *kit.Cluster, data string) {
	c.WaitFor("release of the volume", func(ctx context.Context) error {
		devices, err := exec.Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").Output()
		if err != nil {
			return err
		}
		if strings.Contains(string(devices), data) {
			return fmt.Errorf("a loop device exists:\n%s", devices)
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, c.DataDir) && strings.Contains(line, "example.com~loop") {
				return fmt.Errorf("a mount exists: %s", line)
			}
		}
		return notAttached(ctx, c)
	})
}

// notAttached returns an error while the node's status lists an attached volume that uses the
// driver.
func notAttached(ctx context.Context, c *kit.Cluster) error {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		for _, attached := range node.Status.VolumesAttached {
			if strings.Contains(string(attached.Name), "loop") {
				return fmt.Errorf("volume %s is attached", attached.Name)
			}
		}
		for _, volume := range node.Status.VolumesInUse {
			if strings.Contains(string(volume), "loop") {
				return fmt.Errorf("volume %s is in use", volume)
			}
		}
	}
	return nil
}

// TestDriverIsDiscoveredWhileNodeRuns installs a second driver while the node runs. The discovery
// document promises that drivers are discovered without a restart.
func TestDriverIsDiscoveredWhileNodeRuns(t *testing.T) {
	c := kit.Shared(t)
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "page"), []byte("from the driver"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: reader
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: reader, image: %s, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}
  volumes:
  - {name: data, flexVolume: {driver: test.example.com/bind, options: {source: %q}}}
`, kit.ToolsImage, source))
	c.WaitFor("the event that the driver is missing", func(ctx context.Context) error {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Type == corev1.EventTypeWarning && event.Reason == "FailedMount" {
				return nil
			}
		}
		return fmt.Errorf("none of %d events matches", len(events.Items))
	})
	installDriver(t, c, "test.example.com~bind", `#!/bin/sh
case $1 in
init) echo '{"status":"Success","capabilities":{"attach":false}}' ;;
mount)
	source=$(printf '%s' "$3" | sed 's/.*"source":"\([^"]*\)".*/\1/')
	mkdir -p "$2" && mount --bind "$source" "$2" && echo '{"status":"Success"}' ;;
unmount) umount "$2" && echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`)
	c.WaitPodRunning("reader")
	if page := c.Exec("reader", "cat", "/data/page"); page != "from the driver" {
		t.Errorf("page %q", page)
	}
	c.OC("delete", "pod", "reader")
	c.WaitFor("unmount", func(context.Context) error {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err == nil && strings.Contains(string(mounts), "test.example.com~bind") {
			err = fmt.Errorf("the volume is mounted")
		}
		return err
	})
}

// installDriver installs a driver with an atomic rename of its file, as the discovery document
// requires.
func installDriver(t *testing.T, c *kit.Cluster, name, script string) {
	t.Helper()
	_, program, _ := strings.Cut(name, "~")
	dir := filepath.Join(c.VolumePluginDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(dir, "."+program)
	if err := os.WriteFile(temporary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, program)); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
