package csi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// waitText waits until `oc get` prints the given text.
func (i *installation) waitText(text string, get ...string) {
	i.wait(fmt.Sprintf("%q in oc get %s", text, strings.Join(get, " ")), func(got string) bool { return strings.Contains(got, text) }, get...)
}

func (i *installation) wait(description string, holds func(string) bool, get ...string) {
	i.WaitFor(description, func(context.Context) error {
		got, err := i.TryOC(append([]string{"get"}, get...)...)
		if err == nil && !holds(got) {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// waitStorage waits until a condition on the driver's storage holds.
func (i *installation) waitStorage(description string, holds func() bool) {
	i.WaitFor(description, func(context.Context) error {
		if !holds() {
			return fmt.Errorf("volumes %v, snapshots %v", i.storage.Volumes(), i.storage.Snapshots())
		}
		return nil
	})
}

func TestDriverNeedsOnlySocket(t *testing.T) {
	i := install(t, fake.Options{})
	if got := i.OC("get", "node", "-o", `jsonpath={.items[0].metadata.annotations.csi\.volume\.kubernetes\.io/nodeid}`); !strings.Contains(got, fmt.Sprintf("%q:%q", i.name, "machine-7")) {
		t.Errorf("the node's annotation is %s", got)
	}
	for _, dir := range []string{filepath.Dir(i.socket()), i.Path("kubelet", "plugins_registry")} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("users other than root can reach the sockets in %s: %v, %v", dir, info.Mode(), err)
		}
	}
	i.waitText("true slipway", "csidriver", i.name, "--ignore-not-found", "-o", `jsonpath={.spec.attachRequired} {.metadata.labels.app\.kubernetes\.io/managed-by}`)
	i.Apply(i.claim("data", "1Gi") + pod("data"))
	i.WaitPodRunning("data")
	i.sh("data", "echo kept >/data/a")
	if got := i.OC("get", "volumeattachment", "-o", fmt.Sprintf(`jsonpath={.items[?(@.spec.attacher==%q)].status}`, i.name)); !strings.Contains(got, `"attached":true`) || !strings.Contains(got, "machine-7") {
		t.Errorf("the attachment's status is %s", got)
	}
	if got := i.storage.Attachments(); got != 1 {
		t.Errorf("%d attachments in the storage, want 1", got)
	}
	i.OC("delete", "pod", "data")
	i.waitStorage("detached", func() bool { return i.storage.Attachments() == 0 })
	i.Apply(pod("data"))
	i.WaitPodRunning("data")
	if got := i.sh("data", "cat /data/a"); got != "kept" {
		t.Errorf("the second pod reads %q", got)
	}
	i.OC("delete", "pod/data", "pvc/data")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}

func TestSnapshotsAreCreatedRestoredAndAdopted(t *testing.T) {
	i := install(t, fake.Options{SnapshotSteps: 1})
	i.Apply(i.claim("source", "1Gi") + pod("source"))
	i.WaitPodRunning("source")
	i.sh("source", "echo first >/data/a")
	i.Apply(fmt.Sprintf("{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: monday}, spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: source}}}", i.name))
	i.waitText("true", "volumesnapshot", "monday", "-o", "jsonpath={.status.readyToUse}")
	i.sh("source", "echo second >/data/a")
	i.Apply(i.claim("restored", "1Gi", "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: monday}") + pod("restored") +
		i.claim("cloned", "1Gi", "dataSource: {kind: PersistentVolumeClaim, name: source}") + pod("cloned"))
	for pod, want := range map[string]string{"restored": "first", "cloned": "second"} {
		i.WaitPodRunning(pod)
		if got := i.sh(pod, "cat /data/a"); got != want {
			t.Errorf("%s reads %q, want %q", pod, got, want)
		}
	}
	content := i.OC("get", "volumesnapshot", "monday", "-o", "jsonpath={.status.boundVolumeSnapshotContentName}")
	handle := i.OC("get", "volumesnapshotcontent", content, "-o", "jsonpath={.status.snapshotHandle}")
	i.OC("patch", "volumesnapshotcontent", content, "--type", "merge", "-p", `{"spec":{"deletionPolicy":"Retain"}}`)
	i.waitText("Retain", "volumesnapshotcontent", content, "-o", "jsonpath={.spec.deletionPolicy}")
	i.OC("delete", "volumesnapshot", "monday")
	i.OC("delete", "volumesnapshotcontent", content)
	if got := len(i.storage.Snapshots()); got != 1 {
		t.Fatalf("%d snapshots in the storage, want the retained one", got)
	}
	i.Apply(fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: %[1]s-adopted}
spec: {driver: %[1]s, deletionPolicy: Delete, source: {snapshotHandle: %[2]s}, volumeSnapshotRef: {namespace: %[3]s, name: adopted}}
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: adopted}, spec: {source: {volumeSnapshotContentName: %[1]s-adopted}}}
`, i.name, handle, i.Namespace))
	i.waitText("true", "volumesnapshot", "adopted", "-o", "jsonpath={.status.readyToUse}")
	i.OC("delete", "volumesnapshot", "adopted")
	i.waitStorage("no snapshot remains", func() bool { return len(i.storage.Snapshots()) == 0 })
	i.OC("delete", "pod", "--all")
	i.OC("delete", "pvc", "--all")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}

func TestClaimInUseIsExpanded(t *testing.T) {
	i := install(t, fake.Options{NodeExpansion: true})
	i.Apply(i.claim("data", "1Gi") + pod("data"))
	i.WaitPodRunning("data")
	i.OC("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	i.waitText("FileSystemResizePending", "pvc", "data", "-o", "jsonpath={.status.conditions[*].type}")
	// Change the pod, because the kubelet checks an unchanged pod only once per minute.
	i.OC("annotate", "pod", "data", "look=again")
	i.waitText("2Gi", "pvc", "data", "-o", "jsonpath={.status.capacity.storage}")
	if got := len(i.storage.Calls("NodeExpandVolume")); got == 0 {
		t.Error("the node was not expanded")
	}
	i.OC("delete", "pod/data", "pvc/data")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}
