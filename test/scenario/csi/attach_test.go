package csi

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// waitEvent waits until an event for an object in the test's namespace contains the given text.
func (i *installation) waitEvent(object, text string) {
	i.waitText(text, "events", "--field-selector", "involvedObject.name="+object, "-o", "jsonpath={.items[*].message}")
}

// attachment returns the arguments to `oc get` that print a field of the driver's
// VolumeAttachments.
func (i *installation) attachment(field string) []string {
	return []string{"volumeattachment", "-o", fmt.Sprintf("jsonpath={.items[?(@.spec.attacher==%q)]%s}", i.name, field)}
}

func refuse(method, text string) fake.Plan {
	return fake.Always(method, fake.Fault{Before: status.Error(codes.Internal, text)})
}

func TestPodWaitsForAttachment(t *testing.T) {
	i := install(t, fake.Options{})
	i.storage.SetPlan(refuse("ControllerPublishVolume", "no path to the disk"))
	i.Apply(i.claim("data", "1Gi"))
	i.waitText("Bound", "pvc", "data", "-o", "jsonpath={.status.phase}")
	volume := i.OC("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
	node := i.OC("get", "node", "-o", "jsonpath={.items[0].metadata.name}")

	// The controller must use an existing VolumeAttachment unchanged.
	handle := i.OC("get", "pv", volume, "-o", "jsonpath={.spec.csi.volumeHandle}")
	name := fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+i.name+node)))
	i.Apply(fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s, labels: {made: by-hand}}, spec: {attacher: %s, nodeName: %s, source: {persistentVolumeName: %s}}}",
		name, i.name, node, volume))
	i.Apply(pod("data"))
	i.waitEvent("data", "no path to the disk")
	i.waitText("no path to the disk", i.attachment(".status.attachError.message")...)
	if got := i.storage.Calls("NodeStageVolume", "NodePublishVolume"); len(got) > 0 {
		t.Errorf("the volume was mounted before it was attached: %v", got)
	}
	i.storage.SetPlan(nil)
	i.WaitPodRunning("data")
	for field, want := range map[string]string{
		".metadata.name": name, ".metadata.namespace": "", ".metadata.labels.made": "by-hand", ".spec.attacher": i.name,
		".spec.source.persistentVolumeName": volume, ".spec.nodeName": node, ".status.attached": "true", ".status.attachError": "",
	} {
		if got := i.OC(append([]string{"get"}, i.attachment(field)...)...); got != want {
			t.Errorf("the attachment's %s is %q, want %q", field, got, want)
		}
	}

	i.storage.SetPlan(refuse("ControllerUnpublishVolume", "the disk is busy"))
	i.OC("delete", "pod", "data")
	i.waitText("the disk is busy", i.attachment(".status.detachError.message")...)
	i.Apply(pod("data"))
	// The deleted VolumeAttachment still reports the volume as attached, so the pod must wait.
	i.waitEvent("data", "being deleted")
	i.storage.SetPlan(nil)
	i.WaitPodRunning("data")
	i.OC("delete", "pod/data", "pvc/data")
	i.wait("no attachment remains", func(got string) bool { return got == "" }, i.attachment(".metadata.name")...)
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 && i.storage.Attachments() == 0 })
}

// TestVolumesAreDetachedFromOutOfServiceNode marks a failed node as out of service. Before that,
// the node keeps its pods and volumes.
func TestVolumesAreDetachedFromOutOfServiceNode(t *testing.T) {
	i := install(t, fake.Options{Nodes: []string{"machine-9"}})
	const lostNode = "lost.example.com"
	i.Apply(fmt.Sprintf(`---
{apiVersion: v1, kind: Node, metadata: {name: %[1]s, annotations: {volumes.kubernetes.io/controller-managed-attach-detach: "true"}}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: %[1]s}, spec: {drivers: [{name: %[2]s, nodeID: machine-9, topologyKeys: []}]}}
`, lostNode, i.name))
	t.Cleanup(func() { i.OC("delete", "node/"+lostNode, "csinode/"+lostNode, "--ignore-not-found") })
	i.Apply(i.claim("data", "1Gi") + strings.Replace(pod("data"), "spec:\n", "spec:\n  nodeName: "+lostNode+"\n", 1))
	i.waitStorage("attached", func() bool { return i.storage.Attachments() == 1 })
	i.waitText("true", i.attachment(".status.attached")...)
	i.OC("patch", "node", lostNode, "--subresource", "status", "-p", `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Lost"}]}}`)
	i.OC("delete", "pod", "data", "--wait=false")
	i.OC("taint", "node", lostNode, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	i.waitStorage("detached", func() bool { return i.storage.Attachments() == 0 })
	i.OC("wait", "pod", "data", "--for", "delete", "--timeout", "1m")
	i.Apply(pod("data"))
	i.WaitPodRunning("data") // the volume has been attached to another node
	i.OC("delete", "pod/data", "pvc/data")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}

// TestUpgradeAndLossOfLeader stops the controller, upgrades the nodes, and starts several
// controller instances, one of which becomes the leader.
func TestUpgradeAndLossOfLeader(t *testing.T) {
	i := install(t, fake.Options{})
	stop(t, i.controller)
	i.Apply(i.claim("first", "1Gi"))
	// The cluster itself has no controller that creates the volume.
	i.waitEvent("first", "Waiting for a volume")
	stop(t, i.node)
	if err := i.server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.startNode()
	elect := func(identity string) []string {
		return []string{"--leader-election", "--leader-election-namespace", i.Namespace, "--leader-election-identity", identity}
	}
	i.startController(elect("a")...)
	leader := i.controller
	i.waitText("a", "lease", "slipway-csi", "-o", "jsonpath={.spec.holderIdentity}")
	i.startController(elect("b")...)
	i.Apply(pod("first"))
	i.WaitPodRunning("first")
	if err := leader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = leader.Wait() // Wait returns an error because the process was killed
	i.OC("delete", "pod/first", "pvc/first")
	i.waitStorage("the other instance continues", func() bool { return len(i.storage.Volumes()) == 0 && i.storage.Attachments() == 0 })
	i.waitText("b", "lease", "slipway-csi", "-o", "jsonpath={.spec.holderIdentity}")
}
