package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// volume returns a manifest for a PersistentVolume. fields contains the fields of its spec.
func volume(name, size string, fields ...string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: %s}, %s}}\n", name, size, strings.Join(fields, ", "))
}

func claim(name, size string, fields ...string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {resources: {requests: {storage: %s}}, %s}}\n", name, size, strings.Join(fields, ", "))
}

const accessModes, hostPath = "accessModes: [ReadWriteOnce]", "hostPath: {path: /nowhere}"

// waitVolume waits until a claim is bound to the given volume. If volume is "", it waits until the
// claim is pending.
func waitVolume(c *kit.Cluster, claim, volume string) {
	c.WaitFor(fmt.Sprintf("claim %s bound to %q", claim, volume), func(context.Context) error {
		got, err := c.TryOC("get", "pvc", claim, "-o", "jsonpath={.status.phase} {.spec.volumeName}")
		if err != nil {
			return err
		}
		if want := strings.TrimSpace("Bound " + volume); volume != "" && got != want || volume == "" && got != "Pending " {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func removeVolumes(t *testing.T, c *kit.Cluster, names ...string) {
	t.Cleanup(func() { c.OC(append([]string{"delete", "pv", "--wait=false", "--ignore-not-found"}, names...)...) })
}

func TestClaimsAreBoundToSmallestMatchingVolume(t *testing.T) {
	c := kit.Shared(t)
	class, other := "storageClassName: scenario", "storageClassName: scenario-other"
	removeVolumes(t, c, "large", "medium", "small", "many", "foreign", "annotated")
	c.Apply(volume("large", "10Gi", accessModes, class, hostPath) + volume("medium", "5Gi", accessModes, class, hostPath) + volume("small", "1Gi", accessModes, class, hostPath) +
		volume("many", "2Gi", "accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany]", class, hostPath) + volume("foreign", "3Gi", accessModes, other, hostPath))
	c.OC("wait", "pv", "large", "--for", "jsonpath={.status.phase}=Available", "--timeout", "1m")
	if policy := c.OC("get", "pv", "large", "-o", "jsonpath={.spec.persistentVolumeReclaimPolicy}"); policy != "Retain" {
		t.Errorf("the reclaim policy of large is %q", policy)
	}
	tests := []struct{ claim, size, modes, class, want string }{
		{"exact", "1Gi", accessModes, class, "small"},
		{"shared", "1Gi", "accessModes: [ReadWriteMany]", class, "many"},
		{"three", "3Gi", accessModes, class, "medium"},
		{"of-the-other-class", "1Gi", accessModes, other, "foreign"},
		{"too-much", "20Gi", accessModes, class, ""},
		{"without-class", "1Gi", accessModes, "storageClassName: ''", ""},
	}
	var claims strings.Builder
	for _, tt := range tests {
		claims.WriteString(claim(tt.claim, tt.size, tt.modes, tt.class))
	}
	c.Apply(claims.String())
	for _, tt := range tests {
		waitVolume(c, tt.claim, tt.want)
	}
	list := c.OC("get", "pv", "medium", "--no-headers")
	expect(t, list, "RWO", "Retain", "Bound", c.Namespace+"/three", "scenario")
	if got := c.OC("get", "pv", "medium", "-o", "jsonpath={.spec.claimRef.namespace}/{.spec.claimRef.name}"); got != c.Namespace+"/three" {
		t.Errorf("the class of medium is %q", got)
	}
	c.Apply(volume("annotated", "1Gi", accessModes, "storageClassName: scenario-annotated", hostPath) + `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: annotated, annotations: {volume.beta.kubernetes.io/storage-class: scenario-annotated}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	waitVolume(c, "annotated", "annotated")
	// A released volume must keep its data, and must not be bound to another claim.
	c.OC("delete", "pvc", "three")
	c.OC("wait", "pv", "medium", "--for", "jsonpath={.status.phase}=Released", "--timeout", "1m")
	c.Apply(claim("four", "4Gi", accessModes, class))
	waitVolume(c, "four", "large")
	if phase := c.OC("get", "pv", "medium", "-o", "jsonpath={.status.phase}"); phase != "Released" {
		t.Errorf("medium is %s", phase)
	}
}

func TestModesOfVolumeAndClaimMustAgree(t *testing.T) {
	c := kit.Shared(t)
	const block, files, unset = "volumeMode: Block", "volumeMode: Filesystem", "volumeName: ''"
	bind := map[[2]string]bool{{files, files}: true, {unset, unset}: true, {files, unset}: true, {unset, files}: true, {block, block}: true}
	names := map[string]string{block: "block", files: "files", unset: "unset"}
	const source = "local: {path: /dev/nothing}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}]}}"
	want := map[string]string{}
	var manifest strings.Builder
	for _, ofVolume := range []string{block, files, unset} {
		for _, ofClaim := range []string{block, files, unset} {
			name := names[ofVolume] + "-" + names[ofClaim]
			class := "storageClassName: scenario-" + name
			manifest.WriteString(volume(name, "1Gi", accessModes, class, source, strings.TrimPrefix(ofVolume, unset)) + claim(name, "1Gi", accessModes, class, ofClaim))
			want[name] = ""
			if bind[[2]string{ofVolume, ofClaim}] {
				want[name] = name
			}
		}
	}
	c.Apply(manifest.String())
	removeVolumes(t, c, slices.Collect(maps.Keys(want))...)
	for range 2 { // check again after the controller has synced all claims
		for name, volume := range want {
			waitVolume(c, name, volume)
		}
	}
	for name, want := range map[string]string{"unset-unset": "Filesystem", "block-block": "Block"} {
		if got := c.OC("get", "pvc", name, "-o", "jsonpath={.spec.volumeMode}"); got != want {
			t.Errorf("mode of claim %s is %q, want %s", name, got, want)
		}
	}
}

func TestClaimInUseIsDeletedAfterItsPod(t *testing.T) {
	c := kit.Shared(t)
	removeVolumes(t, c, "used")
	data := t.TempDir()
	c.Apply(volume("used", "1Gi", accessModes, "storageClassName: scenario-used", "hostPath: {path: "+data+"}") + claim("used", "1Gi", accessModes, "storageClassName: scenario-used") + "---" +
		pod("user", sleeper("volumeMounts: [{name: data, mountPath: /data}]"), "volumes: [{name: data, persistentVolumeClaim: {claimName: used}}]"))
	c.WaitPodRunning("user")
	c.Exec("user", "sh", "-c", "echo kept >/data/file")
	c.OC("delete", "pvc", "used", "--wait=false")
	expect(t, c.OC("describe", "pvc", "used"), "Terminating", "kubernetes.io/pvc-protection")
	if content := c.Exec("user", "cat", "/data/file"); content != "kept\n" {
		t.Errorf("file %q", content)
	}
	c.OC("delete", "pod", "user")
	c.OC("wait", "pvc", "used", "--for", "delete", "--timeout", "1m")
	c.OC("wait", "pv", "used", "--for", "jsonpath={.status.phase}=Released", "--timeout", "1m")
	if content, err := os.ReadFile(filepath.Join(data, "file")); err != nil || string(content) != "kept\n" {
		t.Errorf("data of the released volume: %q, %v", content, err)
	}
	// A pod must not be able to use another project's claim.
	makePod(t, c, pod("stranger", sleeper(), "volumes: [{name: data, persistentVolumeClaim: {claimName: used}}]"))
	waitEvent(c, c.Namespace, "stranger", "FailedScheduling", `persistentvolumeclaim "used" not found`)
}

func TestPodGetsRawDevice(t *testing.T) {
	c := kit.Shared(t)
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(output))
	t.Cleanup(func() {
		if err := exec.Command("losetup", "--detach", device).Run(); err != nil {
			t.Error(err)
		}
	})
	removeVolumes(t, c, "raw")
	source := fmt.Sprintf("local: {path: %s}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}]}}", device)
	raw := []string{accessModes, "storageClassName: scenario-raw", "volumeMode: Block"}
	c.Apply(volume("raw", "1Mi", append(raw, source)...) + claim("raw", "1Mi", raw...) + "---" +
		pod("writer", sleeper("volumeDevices: [{name: disk, devicePath: /dev/disk}]"), "volumes: [{name: disk, persistentVolumeClaim: {claimName: raw}}]"))
	c.WaitPodRunning("writer")
	c.Exec("writer", "sh", "-c", "test -b /dev/disk && printf written | dd of=/dev/disk conv=fsync")
	c.OC("delete", "pod", "writer")
	content, err := os.ReadFile(image)
	if err != nil || !strings.HasPrefix(string(content), "written") {
		t.Errorf("the device contains %q, %v", content[:min(len(content), 16)], err)
	}
	expectRejected(t, c, pod("direct", sleeper("volumeDevices: [{name: disk, devicePath: /dev/disk}]"), "volumes: [{name: disk, emptyDir: {}}]"),
		"can only use volume source type of PersistentVolumeClaim")
}

func TestFlexVolumeRequiresDriver(t *testing.T) {
	c := kit.Shared(t)
	expectRejected(t, c, volume("driverless", "1Gi", accessModes, "flexVolume: {fsType: ext4}"), "spec.flexVolume.driver: Required value")
	expectRejected(t, c, pod("driverless", sleeper(), "volumes: [{name: data, flexVolume: {fsType: ext4}}]"), "flexVolume.driver: Required value")
}

func TestClaimsWithoutClassGetDefault(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: scenario-default, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: example.com/none}`)
	t.Cleanup(func() { c.OC("delete", "storageclass", "scenario-default") })
	c.WaitFor("default class", func(context.Context) error {
		c.OC("delete", "pvc", "plain", "--ignore-not-found")
		c.Apply(claim("plain", "1Gi", accessModes))
		if got := c.OC("get", "pvc", "plain", "-o", "jsonpath={.spec.storageClassName}"); got != "scenario-default" {
			return fmt.Errorf("class %q", got)
		}
		return nil
	})
	c.WaitFor("name of the provisioner", func(context.Context) error {
		if got := c.OC("get", "pvc", "plain", "-o", `jsonpath={.metadata.annotations.volume\.beta\.kubernetes\.io/storage-provisioner}`); got != "example.com/none" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	removeVolumes(t, c, "classless")
	c.Apply(volume("classless", "1Gi", accessModes, hostPath) + claim("empty", "1Gi", accessModes, "storageClassName: ''"))
	waitVolume(c, "empty", "classless")
	if policy := c.OC("get", "storageclass", "scenario-default", "-o", "jsonpath={.reclaimPolicy}"); policy != "Delete" {
		t.Errorf("reclaim policy of dynamic volumes is %q", policy)
	}
}
