package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// directory creates a directory on the machine that all users can write to. It returns the
// directory's path and a volume source for it.
func directory(t *testing.T) (path, source string) {
	path = t.TempDir()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path, fmt.Sprintf("hostPath: {path: %s}", path)
}

// user returns a pod that mounts a claim at /data. fields contains additional fields for the pod's
// volume source, such as `readOnly: true`.
func user(name, claim string, fields ...string) string {
	source := fmt.Sprintf("claimName: %s", claim)
	for _, field := range fields {
		source += ", " + field
	}
	return pod(name, sleeper("volumeMounts: [{name: data, mountPath: /data}]"), fmt.Sprintf("volumes: [{name: data, persistentVolumeClaim: {%s}}]", source))
}

func waitVolumePhase(c *kit.Cluster, volume, phase string) {
	c.OC("wait", "pv", volume, "--for", "jsonpath={.status.phase}="+phase, "--timeout", "2m")
}

func TestRecycledVolumeIsEmptyAndAvailable(t *testing.T) {
	c := kit.Shared(t)
	dir, source := directory(t)
	class := "storageClassName: scenario-recycle"
	removeVolumes(t, c, "recycled")
	c.Apply(volume("recycled", "1Gi", accessModes, class, source, "persistentVolumeReclaimPolicy: Recycle") + claim("first", "1Gi", accessModes, class) + "---" + user("writer", "first"))
	c.WaitPodRunning("writer")
	c.Exec("writer", "sh", "-c", "mkdir /data/a && echo x >/data/a/b && echo x >/data/.hidden")
	c.OC("delete", "pod", "writer")
	c.OC("delete", "pvc", "first")
	waitVolumePhase(c, "recycled", "Available")
	if remaining, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(remaining) > 0 {
		t.Errorf("%q are left (%v)", remaining, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".hidden")); !os.IsNotExist(err) {
		t.Errorf("the hidden file remains: %v", err)
	}
	c.Apply(claim("second", "1Gi", accessModes, class))
	waitVolume(c, "second", "recycled")
}

func TestVolumeFailsIfReclaimFails(t *testing.T) {
	c := kit.Shared(t)
	class := "storageClassName: scenario-failed"
	removeVolumes(t, c, "failed")
	// Deletion must fail, because upstream deletes hostPath volumes only below /tmp.
	c.Apply(volume("failed", "1Gi", accessModes, class, "hostPath: {path: /nowhere}", "persistentVolumeReclaimPolicy: Delete") + claim("failed", "1Gi", accessModes, class))
	waitVolume(c, "failed", "failed")
	c.OC("delete", "pvc", "failed")
	waitVolumePhase(c, "failed", "Failed")
}

func TestRecyclerUsesTemplateOfAdministrator(t *testing.T) {
	template := filepath.Join(t.TempDir(), "recycler.yaml")
	content := fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {generateName: pv-recycler-, namespace: openshift-infra}
spec:
  serviceAccountName: pv-recycler-controller
  restartPolicy: Never
  volumes: [{name: any}]
  containers: [{name: main, image: %s, command: [sh, -c, "echo emptied >/scrub/by-the-administrator"], volumeMounts: [{name: any, mountPath: /scrub}]}]
`, kit.ToolsImage)
	if err := os.WriteFile(template, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := kit.Start(t, kit.Options{
		Master: fmt.Sprintf("kubernetesMasterConfig: {controllerArguments: {pv-recycler-pod-template-filepath-hostpath: [%s]}}", template),
	})
	dir, source := directory(t)
	class := "storageClassName: scenario-recycle"
	c.Apply(volume("recycled", "1Gi", accessModes, class, source, "persistentVolumeReclaimPolicy: Recycle") + claim("first", "1Gi", accessModes, class))
	waitVolume(c, "first", "recycled")
	c.OC("delete", "pvc", "first")
	waitVolumePhase(c, "recycled", "Available")
	if content, err := os.ReadFile(filepath.Join(dir, "by-the-administrator")); err != nil || string(content) != "emptied\n" {
		t.Errorf("after the template's command, the volume contains %q, %v", content, err)
	}
}

func TestSharedAndReadOnlyVolumes(t *testing.T) {
	c := kit.Shared(t)
	class := "storageClassName: scenario-modes"
	_, shared := directory(t)
	dir, read := directory(t)
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("there"), 0o644); err != nil {
		t.Fatal(err)
	}
	removeVolumes(t, c, "shared", "read")
	const many, readers = "accessModes: [ReadWriteMany]", "accessModes: [ReadOnlyMany]"
	c.Apply(volume("shared", "1Gi", many, class, shared) + volume("read", "1Gi", readers, class, read) + claim("shared", "1Gi", many, class) + claim("read", "1Gi", readers, class) +
		"---" + user("first", "shared") + "---" + user("second", "shared") + "---" + user("reader", "read", "readOnly: true"))
	for _, name := range []string{"first", "second", "reader"} {
		c.WaitPodRunning(name)
	}
	c.Exec("first", "sh", "-c", "printf hello >/data/a")
	if got := c.Exec("second", "cat", "/data/a"); got != "hello" {
		t.Errorf("the second pod reads %q", got)
	}
	if got := c.Exec("reader", "sh", "-c", "cat /data/a; touch /data/b 2>&1; true"); got != "theretouch: /data/b: Read-only file system\n" {
		t.Errorf("the reader gets %q", got)
	}
}

func TestClaimPrefersVolumeWithExactAccessModes(t *testing.T) {
	c := kit.Shared(t)
	class := "storageClassName: scenario-late"
	c.Apply(claim("waits", "2Gi", accessModes, class))
	waitVolume(c, "waits", "")
	removeVolumes(t, c, "late")
	c.Apply(volume("late", "5Gi", accessModes, class, hostPath))
	waitVolume(c, "waits", "late")
	// The smaller volume also matches, but it has additional access modes. The claim must be bound
	// to the volume that has exactly the requested access modes.
	removeVolumes(t, c, "smaller", "larger")
	c.Apply(volume("smaller", "3Gi", "accessModes: [ReadWriteOnce, ReadOnlyMany]", class, hostPath) + volume("larger", "5Gi", accessModes, class, hostPath))
	waitVolumePhase(c, "smaller", "Available")
	waitVolumePhase(c, "larger", "Available")
	c.Apply(claim("chooses", "2Gi", accessModes, class))
	waitVolume(c, "chooses", "larger")
}

func TestMountOptionsComeFromAnnotation(t *testing.T) {
	c := kit.Shared(t)
	annotated := func(name, source string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s, annotations: {volume.beta.kubernetes.io/mount-options: "nfsvers=4,noexec"}}
spec: {capacity: {storage: 1Gi}, %s, storageClassName: scenario-options, %s}
`, name, accessModes, source)
	}
	removeVolumes(t, c, "options")
	c.Apply(annotated("options", "nfs: {server: 127.0.0.1, path: /}") + claim("options", "1Gi", accessModes, "storageClassName: scenario-options") + "---" + user("user", "options"))
	waitEvent(c, c.Namespace, "user", "FailedMount", "-t nfs -o nfsvers=4,noexec 127.0.0.1:/")
	expectRejected(t, c, annotated("refused", hostPath), "may not specify mount options for this volume type")
}

func TestVolumeCapacityIsStorageOnly(t *testing.T) {
	c := kit.Shared(t)
	expectRejected(t, c, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: odd}, spec: {capacity: {storage: 1Gi, cpu: 1}, "+accessModes+", "+hostPath+"}}", "spec.capacity: Unsupported value", `"storage"`)
	expectRejected(t, c, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: odd}, spec: {resources: {requests: {cpu: 1}}, "+accessModes+"}}", "spec.resources[storage]: Required value")
}

// The machine supports neither NFS nor SCSI, so the kubelet's volume plugins exist but must report
// that programs are missing.
func TestProviderErrorsAreEventsOfPod(t *testing.T) {
	c := kit.Shared(t)
	class := "storageClassName: scenario-remote"
	sources := map[string]struct{ source, says string }{
		"nfs":   {"nfs: {server: 127.0.0.1, path: /}", "mount"},
		"iscsi": {"iscsi: {targetPortal: '127.0.0.1:3260', iqn: 'iqn.2001-04.com.example:storage', lun: 0, fsType: ext4}", "iscsi"},
		"fc":    {"fc: {targetWWNs: ['500a0981891b8dc5'], lun: 0, fsType: ext4}", "fc"},
	}
	for name, volumeType := range sources {
		removeVolumes(t, c, name)
		c.Apply(volume(name, "1Gi", accessModes, class, volumeType.source, fmt.Sprintf("claimRef: {name: %s, namespace: %s}", name, c.Namespace)) +
			claim(name, "1Gi", accessModes, class, "volumeName: "+name) + "---" + user(name, name))
	}
	for name, volumeType := range sources {
		waitEvent(c, c.Namespace, name, "FailedMount", volumeType.says)
	}
}
