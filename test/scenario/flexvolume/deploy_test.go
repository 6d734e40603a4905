package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// author returns a directory with a driver author's files: the example's Dockerfile and script, and
// a different driver.
func author(t *testing.T, c *kit.Cluster, driver, page string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"driver/" + driver: fmt.Sprintf(`#!/bin/sh
case $1 in
init) echo '{"status":"Success","capabilities":{"attach":false}}' ;;
mount) mkdir -p "$2" && mount -t tmpfs tmpfs "$2" && echo '%s' >"$2/page" && echo '{"status":"Success"}' ;;
unmount) umount "$2" && echo '{"status":"Success"}' ;;
*) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`, page)}
	for _, name := range []string{"deploy/Dockerfile", "deploy/deploy.sh"} {
		content, err := os.ReadFile(c.RepositoryFile("examples", "flexvolume", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build builds a driver's image on the host without a registry, as the example's README describes.
func build(t *testing.T, c *kit.Cluster, driver, page, image string) {
	t.Helper()
	dir := author(t, c, driver, page)
	c.MustSlipway("images", "build", "--tag", image, "--build-arg", "BASE="+kit.ToolsImage, "--build-arg", "VENDOR=deploy.example.com",
		"--build-arg", "DRIVER="+driver, "--file", filepath.Join(dir, "deploy", "Dockerfile"), dir)
}

// daemonSet returns the example's DaemonSet with this cluster's driver directory and with the given
// driver and image.
func daemonSet(t *testing.T, c *kit.Cluster, driver, image string) string {
	t.Helper()
	content, err := os.ReadFile(c.RepositoryFile("examples", "flexvolume", "deploy", "daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"localhost/loop-driver:1", image, "loop-driver", driver+"-driver",
		"namespace: flexvolume-drivers", "namespace: "+c.Namespace, "name: flexvolume-drivers", "name: "+c.Namespace,
		"/usr/libexec/kubernetes/kubelet-plugins/volume/exec", c.VolumePluginDir,
	).Replace(string(content))
}

// reader returns a pod with a volume that uses a driver.
func reader(name, driver string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: reader, image: %q, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, flexVolume: {driver: deploy.example.com/%s}}]
`, name, kit.ToolsImage, driver)
}

// TestDriversAreDeployedFromImages implements the user story in the discovery document. Alice
// builds images for her drivers, Bob runs them with a DaemonSet, and Charlie uses their volumes.
// The test then updates, adds and removes drivers. No step requires a restart or a login to a
// machine.
func TestDriversAreDeployedFromImages(t *testing.T) {
	c := kit.Shared(t)
	page := func(pod, want string) {
		t.Helper()
		c.WaitPodRunning(pod)
		if got := c.Exec(pod, "cat", "/data/page"); got != want+"\n" {
			t.Errorf("page of %s is %q, want %q", pod, got, want)
		}
	}
	build(t, c, "first", "version 1", "localhost/first-driver:1")
	c.Apply(daemonSet(t, c, "first", "localhost/first-driver:1"))
	c.OC("rollout", "status", "daemonset/first-driver", "--timeout=2m")
	c.Apply(reader("one", "first"))
	page("one", "version 1")

	build(t, c, "first", "version 2", "localhost/first-driver:2")
	c.Apply(daemonSet(t, c, "first", "localhost/first-driver:2"))
	c.OC("rollout", "status", "daemonset/first-driver", "--timeout=2m")
	waitVersion(t, c, "first", "version 2")
	c.Apply(reader("two", "first"))
	page("two", "version 2")
	page("one", "version 1") // a running pod keeps its volume

	build(t, c, "second", "another driver", "localhost/second-driver:1")
	c.Apply(daemonSet(t, c, "second", "localhost/second-driver:1"))
	c.OC("rollout", "status", "daemonset/second-driver", "--timeout=2m")
	c.Apply(reader("three", "second"))
	page("three", "another driver")
	page("two", "version 2")

	c.OC("delete", "daemonset", "first-driver", "second-driver", "--cascade=foreground")
	page("three", "another driver") // the driver must outlive the pods that deployed it
	c.OC("delete", "pods", "one", "two", "three")
	for _, driver := range []string{"first", "second"} {
		c.WaitFor("removal of "+driver+", which no volume uses any more", func(context.Context) error {
			if result := c.Slipway("flexvolume", "remove", "deploy.example.com/"+driver); result.Code != 0 {
				return errors.New(result.Stderr)
			}
			return nil
		})
	}
	// Accept two texts, because the event's text depends on whether the kubelet has already
	// unregistered the driver, which takes a few seconds.
	c.Apply(reader("late", "first"))
	c.WaitFor("event of the removed driver", func(context.Context) error {
		events := c.OC("get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.message}{"\n"}{end}`)
		for event := range strings.Lines(events) {
			removed := strings.Contains(event, "it has been removed; install it again") || strings.Contains(event, "it is not installed; install it as")
			if strings.HasPrefix(event, "late ") && removed {
				return nil
			}
		}
		return fmt.Errorf("events: %s", events)
	})
	c.OC("delete", "pods", "--all", "--wait=false")
}

// waitVersion waits until the node's last-good copy of a driver contains the given text.
func waitVersion(t *testing.T, c *kit.Cluster, driver, text string) {
	t.Helper()
	remaining := c.Path("flexvolume", "node", "deploy.example.com~"+driver, driver)
	c.WaitFor("use of "+text, func(context.Context) error {
		content, err := os.ReadFile(remaining)
		if err == nil && !strings.Contains(string(content), text) {
			err = fmt.Errorf("it is %s", content)
		}
		return err
	})
}
