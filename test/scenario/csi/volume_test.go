package csi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// volume creates a volume in the driver's storage for a manually created PersistentVolume. It
// returns the volume's handle.
func (i *installation) volume(name string) string {
	i.t.Helper()
	response, err := i.storage.CreateVolume(i.t.Context(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}})
	if err != nil {
		i.t.Fatal(err)
	}
	return response.GetVolume().GetVolumeId()
}

func TestStaticVolumesAreMountedWithoutStaging(t *testing.T) {
	i := install(t, fake.Options{LacksNode: []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}})
	pv := func(source string) string {
		return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s-pv}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: %[1]s, csi: {%s}}}\n", i.name, source)
	}
	if _, err := i.TryOCWithInput(pv("volumeHandle: any"), "apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), "spec.csi.driver") {
		t.Errorf("a PersistentVolume without a driver: %v", err)
	}
	handle := i.volume("by-hand")
	i.Apply(pv(fmt.Sprintf("driver: %s, volumeHandle: %s, readOnly: true", i.name, handle)) + i.claim("first", "1Gi", "volumeName: "+i.name+"-pv") + pod("first"))
	second := strings.Replace(pod("second"), "claimName: second", "claimName: first", 1)
	i.Apply(second)
	i.WaitPodRunning("first")
	i.WaitPodRunning("second")
	for _, call := range i.storage.Calls("ControllerPublishVolume") {
		if !call.Request.(*csi.ControllerPublishVolumeRequest).GetReadonly() {
			t.Error("the volume was attached for writing")
		}
	}
	paths := map[string]bool{}
	for _, call := range i.storage.Calls("NodePublishVolume") {
		paths[call.Request.(*csi.NodePublishVolumeRequest).GetTargetPath()] = true
	}
	if len(paths) != 2 {
		t.Errorf("target paths are %v, want one for each pod", paths)
	}
	i.storage.SetPlan(fake.Times(100, "NodeUnpublishVolume", fake.Fault{Before: status.Error(codes.Internal, "still in use")}))
	i.OC("delete", "pod", "first", "second", "--wait=false")
	i.waitStorage("unmounting is retried", func() bool { return len(i.storage.Calls("NodeUnpublishVolume")) > 3 })
	i.storage.SetPlan(nil)
	i.OC("wait", "pod", "first", "second", "--for", "delete", "--timeout", "1m")
	i.waitStorage("detached", func() bool { return i.storage.Attachments() == 0 })
	for path := range paths {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the target path %s remains: %v", path, err)
		}
	}
	if got := i.storage.Calls("NodeStageVolume", "NodeUnstageVolume"); len(got) > 0 {
		t.Errorf("a driver without staging was called to stage: %v", got)
	}
	i.Apply(strings.Replace(pod("inline"), "persistentVolumeClaim: {claimName: inline}", "csi: {driver: "+i.name+"}", 1))
	i.waitEvent("inline", "Ephemeral") // the driver does not support ephemeral volumes
	i.OC("delete", "pod/inline", "pvc/first")
	i.OC("delete", "pv", i.name+"-pv")
}

func TestSecretsOfClassReachNode(t *testing.T) {
	i := install(t, fake.Options{})
	secret := func(name, value string) string {
		return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {key: %s}}\n", name, value)
	}
	// This driver requires its binary key in base64. Users encode the key a second time, because
	// every value in a secret is in base64.
	i.Apply(secret("stage", "c3RhZ2Vk") + secret("publish", "QVBfK0E9PQ==") + secret("other", "b3RoZXI=") + fmt.Sprintf(`---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %[1]s-secret}
provisioner: %[1]s
parameters:
  csi.storage.k8s.io/node-stage-secret-name: stage
  csi.storage.k8s.io/node-stage-secret-namespace: %[2]s
  csi.storage.k8s.io/node-publish-secret-name: publish
  csi.storage.k8s.io/node-publish-secret-namespace: ${pvc.namespace}
`, i.name, i.Namespace))
	i.Apply(strings.Replace(i.claim("data", "1Gi"), "storageClassName: "+i.name, "storageClassName: "+i.name+"-secret", 1) + pod("data"))
	i.WaitPodRunning("data")
	for method, want := range map[string]string{"NodeStageVolume": "staged", "NodePublishVolume": "AP_+A=="} {
		for _, call := range i.storage.Calls(method) {
			if got := call.Request.(interface{ GetSecrets() map[string]string }).GetSecrets(); len(got) != 1 || got["key"] != want {
				t.Errorf("%s got the secrets %v, want key: %s", method, got, want)
			}
		}
	}
	kubelet := func(name string) error {
		_, err := i.TryOC("get", "secret", name, "--kubeconfig", i.Path("pki", "node", "node.kubeconfig"))
		return err
	}
	if err := kubelet("stage"); err != nil {
		t.Error(err)
	}
	if err := kubelet("other"); err == nil || !strings.Contains(err.Error(), "no relationship found") {
		t.Errorf("the kubelet can read a secret that no volume of its pods uses: %v", err)
	}
	for _, resource := range []string{"storageclasses", "persistentvolumes"} {
		if got, _ := i.TryOC("auth", "can-i", "create", resource, "--as", "alice"); strings.TrimSpace(got) != "no" {
			t.Errorf("a user without rights can create %s: %s", resource, got)
		}
	}
	i.OC("delete", "pod/data", "pvc/data")
	i.OC("delete", "storageclass", i.name+"-secret")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}

func TestVolumeIsModifiedAndItsHealthReported(t *testing.T) {
	i := install(t, fake.Options{}, "--health-interval", "1s")
	class := func(name, parameters string) string {
		return fmt.Sprintf("---\n{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: %s-%s}, driverName: %[1]s, parameters: {%[3]s}}\n", i.name, name, parameters)
	}
	i.Apply(class("silver", "tier: silver") + class("gold", "tier: gold") + class("wrong", "colour: red") + i.claim("data", "1Gi", "volumeAttributesClassName: "+i.name+"-silver") + pod("data"))
	i.WaitPodRunning("data")
	tier := func() (tier string) {
		for _, volume := range i.storage.Volumes() {
			tier = volume.Mutable["tier"]
		}
		return tier
	}
	if got := tier(); got != "silver" {
		t.Errorf("the new volume has the tier %q", got)
	}
	choose := func(name string) {
		i.OC("patch", "pvc", "data", "-p", fmt.Sprintf(`{"spec": {"volumeAttributesClassName": "%s-%s"}}`, i.name, name))
	}
	choose("wrong")
	i.waitText("Infeasible", "pvc", "data", "-o", "jsonpath={.status.modifyVolumeStatus.status}")
	choose("gold")
	i.waitText("gold", "pvc", "data", "-o", "jsonpath={.status.currentVolumeAttributesClassName}")
	if got := tier(); got != "gold" {
		t.Errorf("the volume in use has the tier %q", got)
	}

	for _, volume := range i.storage.Volumes() {
		i.storage.SetHealth(volume.ID, csi.VolumeHealthErrorType_DATA_LOSS)
		i.waitEvent("data", "data_loss")
		i.storage.SetHealth(volume.ID, csi.VolumeHealthErrorType_UNKNOWN_VOLUME_HEALTH_TYPE)
		i.waitEvent("data", "healthy again")
	}
	i.OC("delete", "pod/data", "pvc/data")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
	i.OC("delete", "volumeattributesclass", i.name+"-silver", i.name+"-gold", i.name+"-wrong")
}
