// Package down tests that `slipway down` removes everything except the data, and that --purge also
// removes the data. All other scenarios end with `slipway down --purge`, and also fail if anything
// remains.
package down

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

var application = fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data: {color: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: memory, emptyDir: {medium: Memory}}, {name: settings, configMap: {name: kept}}]
      containers:
      - name: web
        image: %s
        command: [sleep, infinity]
        volumeMounts: [{name: memory, mountPath: /memory}, {name: settings, mountPath: /settings}]
---
apiVersion: v1
kind: Pod
metadata: {name: on-host}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: web
    image: %[1]s
    command: [sh, -c, "[ -e /data/note ] || echo kept >/data/note; exec httpd -f -p 80"]
    ports: [{containerPort: 80, hostPort: 18081}]
    volumeMounts: [{name: data, mountPath: /data}]
`, kit.ToolsImage)

func TestDownKeepsObjectsForNextUp(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(application)
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	c.WaitPodRunning("on-host")

	c.Down() // Down also checks that nothing remains
	if status := c.Slipway("status"); status.Code != 1 || !strings.Contains(status.Stderr, "slipway up") {
		t.Errorf("slipway status of a stopped host: exit code %d, %q", status.Code, status.Stderr)
	}
	c.MustSlipway("down") // a second call must succeed

	c.Up()
	checkApplication(t, c)
}

// checkApplication checks that the application runs and has its data.
func checkApplication(t *testing.T, c *kit.Cluster) {
	t.Helper()
	if color := c.OC("get", "configmap", "kept", "-o", "jsonpath={.data.color}"); color != "blue" {
		t.Errorf("the object's value is %q", color)
	}
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	c.WaitPodRunning("on-host")
	if note := c.Exec("on-host", "cat", "/data/note"); note != "kept\n" {
		t.Errorf("the volume of the pod contains %q", note)
	}
}

func TestStorageResetKeepsObjectsAndVolumes(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(application)
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	c.WaitPodRunning("on-host")
	container := func() string { return c.Pod("on-host").Status.ContainerStatuses[0].ContainerID }
	before := container()
	if result := c.Slipway("storage", "reset"); result.Code != 1 || !strings.Contains(result.Stderr, "--yes") {
		t.Errorf("without a confirmation: exit code %d, %q", result.Code, result.Stderr)
	}
	if c.Pod("on-host"); c.Slipway("status").Code != 0 {
		t.Error("the host was stopped without a confirmation")
	}
	c.MustSlipway("storage", "reset", "--yes")
	if entries, err := os.ReadDir(c.Path("containerd")); err != nil || len(entries) > 0 {
		t.Errorf("the storage contains %v, %v", entries, err)
	}
	c.MustSlipway("storage", "reset", "--yes") // a second call must succeed

	c.Up()
	checkApplication(t, c)
	if after := container(); after == before {
		t.Errorf("the container is still %s", after)
	}
}

func TestDownCleansUpAfterKilledSupervisor(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	c.Apply(application)
	c.WaitPodRunning("on-host")
	c.Kill("slipway")
	c.Down()
}

func TestPurgeRemovesData(t *testing.T) {
	c := kit.Start(t, kit.Options{})
	runStuckVolume(t, c)
	c.Apply(rawVolume)
	c.WaitPodRunning("raw")
	result := c.Slipway("down", "--purge")
	if result.Code != 0 {
		t.Fatalf("down --purge: exit code %d\n%s", result.Code, result.Stderr)
	}
	for _, want := range []string{`"example.com/stuck"`, "the disk is stuck", "was unmounted without the driver"} {
		if !strings.Contains(result.Stderr, want) {
			t.Errorf("down --purge does not print %s:\n%s", want, result.Stderr)
		}
	}
	if entries, err := os.ReadDir(c.DataDir); !os.IsNotExist(err) && len(entries) > 0 {
		t.Errorf("the data directory contains %v", entries)
	}
	c.MustSlipway("down", "--purge") // a missing cluster must not be an error
}

// rawVolume is a pod with a raw block volume. The driver and the kubelet each attach a loop device
// for it. The kit fails the test if a device remains.
var rawVolume = fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: raw}
spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 16Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: raw}
spec:
  volumes: [{name: disk, persistentVolumeClaim: {claimName: raw}}]
  containers: [{name: raw, image: %s, command: [sleep, infinity], volumeDevices: [{name: disk, devicePath: /dev/disk}]}]
`, kit.ToolsImage)

// stuckDriver is a driver that stages a tmpfs and then fails to unmount it.
const stuckDriver = `#!/bin/sh
case $1 in
init) echo '{"status": "Success", "capabilities": {"attach": true}}' ;;
attach | waitforattach) echo '{"status": "Success", "device": "/dev/stuck"}' ;;
isattached) echo '{"status": "Success", "attached": true}' ;;
detach) echo '{"status": "Success"}' ;;
mountdevice) mkdir -p "$2" && mount -t tmpfs stuck "$2" && echo '{"status": "Success"}' ;;
unmountdevice) echo '{"status": "Failure", "message": "the disk is stuck"}'; exit 1 ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
`

// runStuckVolume runs a pod whose volume uses stuckDriver.
func runStuckVolume(t *testing.T, c *kit.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stuck")
	if err := os.WriteFile(file, []byte(stuckDriver), 0o755); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("flexvolume", "install", file, "--driver", "example.com/stuck")
	c.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: stuck}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ` + kit.ToolsImage + `, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, flexVolume: {driver: example.com/stuck}}]
`)
	c.WaitPodRunning("stuck")
}
