// Package localstorage tests the default storage class: volumes with an enforced size on the node's
// disk, with all capabilities of the local.csi.slipway.io driver.
package localstorage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// claim returns a manifest for a claim. fields contains additional fields for its spec.
func claim(name, size string, fields ...string) string {
	all := append([]string{"accessModes: [ReadWriteOnce]", "resources: {requests: {storage: " + size + "}}"}, fields...)
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {%s}}\n", name, strings.Join(all, ", "))
}

// pod returns a manifest for a pod that runs until it is stopped. Its volumes are mounted at
// /<name>. Each volume has the form `name: source`, where source is the name of a claim or the
// fields of a volume source.
func pod(name string, volumes ...string) string {
	var mounts, sources []string
	for _, volume := range volumes {
		volumeName, source, _ := strings.Cut(volume, ": ")
		if !strings.Contains(source, ":") {
			source = "persistentVolumeClaim: {claimName: " + source + "}"
		}
		mounts = append(mounts, fmt.Sprintf("{name: %s, mountPath: /%[1]s}", volumeName))
		sources = append(sources, fmt.Sprintf("{name: %s, %s}", volumeName, source))
	}
	return podWith(name, "volumeMounts: ["+strings.Join(mounts, ", ")+"]", "volumes: ["+strings.Join(sources, ", ")+"]")
}

// podWith works like pod, but its arguments are container fields and spec fields instead of
// volumes.
func podWith(name, container, spec string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, command: [sleep, infinity], %s}]
  %s
`, name, kit.ToolsImage, container, spec)
}

// class creates a StorageClass for the driver, and deletes it when the test ends.
func class(t *testing.T, c *kit.Cluster, name, fields string) {
	t.Helper()
	c.Apply(fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: local.csi.slipway.io,
  volumeBindingMode: WaitForFirstConsumer, allowVolumeExpansion: true, %s}`, name, fields))
	t.Cleanup(func() { c.OC("delete", "storageclass", name) })
}

// sh runs a shell command in a pod and returns its output without leading and trailing whitespace.
func sh(c *kit.Cluster, pod, command string) string {
	return strings.TrimSpace(c.Exec(pod, "sh", "-c", command))
}

// volumeOf returns the name of a claim's PersistentVolume.
func volumeOf(c *kit.Cluster, claim string) string {
	return c.OC("get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}")
}

// waitText waits until `oc get` prints the given text.
func waitText(c *kit.Cluster, text string, get ...string) {
	c.WaitFor(fmt.Sprintf("%q in oc get %s", text, strings.Join(get, " ")), func(context.Context) error {
		got, err := c.TryOC(append([]string{"get"}, get...)...)
		if err == nil && !strings.Contains(got, text) {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

func TestClaimGetsVolumeOfItsSize(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("full", "64Mi") + claim("neighbor", "64Mi"))
	if got := c.OC("get", "pvc", "full", "-o", "jsonpath={.spec.storageClassName}"); got != "slipway-local" {
		t.Errorf("the default class is %q", got)
	}
	c.Apply(pod("writer", "full: full", "neighbor: neighbor"))
	c.WaitPodRunning("writer")
	if got := sh(c, "writer", "dd if=/dev/zero of=/full/a bs=1M count=100 2>&1; true"); !strings.Contains(got, "No space left on device") {
		t.Errorf("writing 100 MiB into 64: %s", got)
	}
	sh(c, "writer", "dd if=/dev/zero of=/neighbor/a bs=1M count=32 2>/dev/null && sync")

	volume := volumeOf(c, "full")
	node := c.OC("get", "pod", "writer", "-o", "jsonpath={.spec.nodeName}")
	if got := c.OC("get", "pv", volume, "-o", "jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms}"); !strings.Contains(got, "local.csi.slipway.io/node") || !strings.Contains(got, node) {
		t.Errorf("the volume's node affinity is %s", got)
	}
	image := c.Path("storage", "volumes", volume+".img")
	if _, err := os.Stat(image); err != nil {
		t.Error(err)
	}
	c.OC("delete", "pod", "writer")
	c.Apply(pod("reader", "full: full"))
	c.WaitPodRunning("reader")
	if got := sh(c, "reader", "stat -c %s /full/a"); len(got) < 8 {
		t.Errorf("the next pod reads %s bytes", got)
	}
	c.OC("delete", "pod", "reader")
	c.OC("delete", "pvc", "full", "neighbor")
	c.OC("wait", "pv", volume, "--for", "delete", "--timeout", "1m")
	if _, err := os.Stat(image); !os.IsNotExist(err) {
		t.Errorf("the image exists after the claim was deleted: %v", err)
	}
}

func TestClaimForRawDevice(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("raw", "16Mi", "volumeMode: Block"))
	device := func(name string) string {
		return podWith(name, "volumeDevices: [{name: disk, devicePath: /dev/disk}]", "volumes: [{name: disk, persistentVolumeClaim: {claimName: raw}}]")
	}
	c.Apply(device("writer"))
	c.WaitPodRunning("writer")
	sh(c, "writer", "test -b /dev/disk && printf written | dd of=/dev/disk conv=fsync 2>/dev/null")
	c.OC("delete", "pod", "writer")
	c.Apply(device("reader"))
	c.WaitPodRunning("reader")
	if got := sh(c, "reader", "dd if=/dev/disk bs=7 count=1 2>/dev/null"); got != "written" {
		t.Errorf("the device begins with %q", got)
	}
	c.OC("delete", "pod", "reader")
	volume := volumeOf(c, "raw")
	c.OC("delete", "pvc", "raw")
	c.OC("wait", "pv", volume, "--for", "delete", "--timeout", "1m")
}

func TestCloneHasContentOfSource(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("source", "64Mi") + pod("source", "data: source"))
	c.WaitPodRunning("source")
	sh(c, "source", "echo first >/data/a && sync")
	c.Apply(claim("clone", "128Mi", "dataSource: {kind: PersistentVolumeClaim, name: source}") + pod("clone", "data: clone"))
	c.WaitPodRunning("clone")
	sh(c, "source", "echo second >/data/a && sync")
	if got := sh(c, "clone", "cat /data/a"); got != "first" {
		t.Errorf("the clone has %q", got)
	}
	if got := sh(c, "clone", "df -m /data | awk 'NR==2 {print ($2 > 100)}'"); got != "1" {
		t.Errorf("the larger clone's file system has not grown: %s", sh(c, "clone", "df -m /data"))
	}
}

func TestSnapshotIsRestored(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("source", "64Mi") + pod("source", "data: source"))
	c.WaitPodRunning("source")
	sh(c, "source", "echo first >/data/a && sync")
	// Wait for the class, which is created shortly after the cluster is ready.
	c.WaitFor("class of snapshots", func(context.Context) error {
		_, err := c.TryOC("get", "volumesnapshotclass", "slipway-local")
		return err
	})
	c.Apply("{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: kept}, spec: {source: {persistentVolumeClaimName: source}}}")
	c.OC("wait", "volumesnapshot", "kept", "--for", "jsonpath={.status.readyToUse}=true", "--timeout", "1m")
	sh(c, "source", "echo second >/data/a && sync")
	c.OC("delete", "pod", "source")
	c.OC("delete", "pvc", "source")
	c.Apply(claim("restored", "64Mi", "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: kept}") + pod("restored", "data: restored"))
	c.WaitPodRunning("restored")
	if got := sh(c, "restored", "cat /data/a"); got != "first" {
		t.Errorf("the restored volume has %q", got)
	}
	c.OC("delete", "volumesnapshot", "kept", "--timeout", "1m")
	if remaining, err := filepath.Glob(c.Path("storage", "snapshots", "*")); err != nil || len(remaining) > 0 {
		t.Errorf("%q are left, %v", remaining, err)
	}
}

func TestDriverIsRegistered(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("any", "16Mi") + pod("user", "data: any"))
	node := c.WaitPodRunning("user").Spec.NodeName
	if _, err := os.Stat(c.Path("kubelet", "plugins", "local.csi.slipway.io", "csi.sock")); err != nil {
		t.Error(err)
	}
	const driver = `jsonpath={.spec.drivers[?(@.name=="local.csi.slipway.io")]}`
	for _, want := range []string{`"nodeID":"` + node + `"`, `"topologyKeys":["local.csi.slipway.io/node"]`} {
		if got := c.OC("get", "csinode", node, "-o", driver); !strings.Contains(got, want) {
			t.Errorf("the node's drivers are %s, want %s", got, want)
		}
	}
	if got := c.OC("get", "node", node, "-o", `jsonpath={.metadata.labels.local\.csi\.slipway\.io/node} {.metadata.annotations.csi\.volume\.kubernetes\.io/nodeid}`); !strings.HasPrefix(got, node+" ") || !strings.Contains(got, `"local.csi.slipway.io":"`+node+`"`) {
		t.Errorf("label and annotation of the node are %s", got)
	}
	affinity := c.OC("get", "pv", volumeOf(c, "any"), "-o", "jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms}")
	if want := `[{"matchExpressions":[{"key":"local.csi.slipway.io/node","operator":"In","values":["` + node + `"]}]}]`; affinity != want {
		t.Errorf("the volume's node affinity is %s, want %s", affinity, want)
	}
}

func TestInlineVolumeIsDeletedWithPod(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(pod("inline", "data: csi: {driver: local.csi.slipway.io, fsType: ext4, volumeAttributes: {size: 16Mi}}"))
	c.WaitPodRunning("inline")
	if got := sh(c, "inline", "dd if=/dev/zero of=/data/a bs=1M count=32 2>&1; true"); !strings.Contains(got, "No space left on device") {
		t.Errorf("writing 32 MiB into 16: %s", got)
	}
	images := func() []string {
		paths, err := filepath.Glob(c.Path("storage", "volumes", "csi-*"))
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	if len(images()) == 0 {
		t.Error("the image does not exist")
	}
	c.OC("delete", "pod", "inline")
	c.WaitFor("end of the volume", func(context.Context) error {
		if remaining := images(); len(remaining) > 0 {
			return fmt.Errorf("%q are left", remaining)
		}
		return nil
	})
}

func TestVolumeIsExpandedWhilePodRuns(t *testing.T) {
	c := kit.Shared(t)
	// Use XFS, because XFS volumes can grow even on a machine without CAP_SYS_RESOURCE.
	class(t, c, "scenario-xfs", `parameters: {csi.storage.k8s.io/fstype: xfs}`)
	c.Apply(claim("grows", "300Mi", "storageClassName: scenario-xfs") + pod("user", "data: grows"))
	before := c.WaitPodRunning("user")
	sh(c, "user", "echo kept >/data/a")
	c.OC("patch", "pvc", "grows", "-p", `{"spec": {"resources": {"requests": {"storage": "600Mi"}}}}`)
	waitText(c, "600Mi", "pvc", "grows", "-o", "jsonpath={.status.capacity.storage}")
	if got := sh(c, "user", "df -m /data | awk 'NR==2 {print ($2 > 500)}' && cat /data/a"); got != "1\nkept" {
		t.Errorf("in the pod: %q", got)
	}
	if after := c.Pod("user"); after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Error("the pod was started again")
	}
}

func TestSchedulerUsesFreeCapacityOfNode(t *testing.T) {
	c := kit.Shared(t)
	waitText(c, "slipway-local", "csistoragecapacities", "--all-namespaces", "-o", "jsonpath={.items[*].storageClassName}")
	if got := c.OC("get", "csistoragecapacities", "--all-namespaces", "-o", "jsonpath={.items[0].nodeTopology.matchLabels}"); !strings.Contains(got, "local.csi.slipway.io/node") {
		t.Errorf("the topology of the capacity is %s", got)
	}
	c.Apply(claim("huge", "1000Ti") + pod("waits", "data: huge"))
	waitText(c, "did not have enough free storage", "pod", "waits", "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
	if got := c.OC("get", "pvc", "huge", "-o", "jsonpath={.status.phase}"); got != "Pending" {
		t.Errorf("the claim is %s", got)
	}
}

func TestAccessModesAreChecked(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: many}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 16Mi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: one}, spec: {accessModes: [ReadWriteOncePod], resources: {requests: {storage: 16Mi}}}}
` + pod("many", "data: many") + pod("first", "data: one"))
	waitText(c, "a local volume is on one node", "events", "--field-selector", "involvedObject.name=many", "-o", "jsonpath={.items[*].message}")
	c.WaitPodRunning("first")
	c.Apply(pod("second", "data: one"))
	waitText(c, "ReadWriteOncePod", "pod", "second", "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
}

func TestGroupCanWrite(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("grouped", "16Mi") + podWith("member", "volumeMounts: [{name: data, mountPath: /data}]",
		"securityContext: {runAsUser: 1000, fsGroup: 2000}\n  volumes: [{name: data, persistentVolumeClaim: {claimName: grouped}}]"))
	c.WaitPodRunning("member")
	if got := sh(c, "member", "echo mine >/data/a && stat -c %g /data/a"); got != "2000" {
		t.Errorf("the file's group is %s", got)
	}
}

func TestKubeletReportsUsageOfVolume(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("measured", "64Mi") + pod("user", "data: measured"))
	node := c.WaitPodRunning("user").Spec.NodeName
	waitText(c, `"measured"`, "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
}

func TestVolumesOutliveNodeProcess(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(claim("kept", "64Mi") + pod("writer", "data: kept"))
	before := c.WaitPodRunning("writer").Status.ContainerStatuses[0].ContainerID
	sh(c, "writer", "echo before >/data/a && sync")
	c.Kill("node")
	c.WaitFor("the node process", func(context.Context) error {
		if _, err := c.TryOC("exec", "writer", "--", "sh", "-c", "echo after >>/data/a && sync"); err != nil {
			return err
		}
		return nil
	})
	c.Apply(claim("next", "64Mi") + pod("next", "data: next"))
	c.WaitPodRunning("next")
	if got := sh(c, "writer", "cat /data/a"); !strings.HasPrefix(got, "before\nafter") {
		t.Errorf("it has %q", got)
	}
	if after := c.WaitPodRunning("writer").Status.ContainerStatuses[0].ContainerID; after != before {
		t.Error("the pod was started again")
	}
	c.OC("delete", "pod", "writer", "next")
	c.Apply(pod("reader", "data: kept"))
	c.WaitPodRunning("reader")
	if got := sh(c, "reader", "cat /data/a"); !strings.HasPrefix(got, "before\nafter") {
		t.Errorf("the next pod reads %q", got)
	}
}
