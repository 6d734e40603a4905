package csi

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// These are the fields in which the kubelet records drivers: the names in the CSINode, and the
// Node's annotation.
const (
	driverNames = "jsonpath={.items[*].spec.drivers[*].name}"
	annotation  = `jsonpath={.items[0].metadata.annotations.csi\.volume\.kubernetes\.io/nodeid}`
)

// waitRegistered waits until the CSINode and the annotation contain the driver or, if registered is
// false, no longer contain it.
func (i *installation) waitRegistered(registered bool) {
	says := func(got string) bool { return strings.Contains(got, i.name) == registered }
	i.wait(fmt.Sprintf("the CSINode has the driver: %t", registered), says, "csinode", "-o", driverNames)
	i.wait(fmt.Sprintf("the annotation has the driver: %t", registered), says, "node", "-o", annotation)
}

func TestRegistrationFollowsDriverAndKubelet(t *testing.T) {
	i := install(t, fake.Options{})
	i.waitRegistered(true)
	i.storage.SetPlan(fake.Always("NodeGetInfo", fake.Fault{Before: status.Error(codes.Internal, "the location of the driver is unknown")}))
	i.Kill("node")
	i.waitRegistered(false) // a new kubelet deletes the records of an earlier kubelet
	i.storage.SetPlan(nil)
	i.Apply(i.claim("data", "1Gi") + pod("data"))
	i.WaitPodRunning("data") // the pod runs only if the kubelet has found the driver again
	if err := i.server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.OC("delete", "pod", "data")
	i.waitStorage("detached", func() bool { return i.storage.Attachments() == 0 })
	i.OC("delete", "pvc", "data")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
	stop(t, i.node)
	i.waitRegistered(false)
}

// restart serves the socket with another version of the driver.
func (i *installation) restart(options fake.Options) {
	i.t.Helper()
	i.server.Stop()
	options.Name = i.name
	i.storage = fake.New(options)
	server, err := i.storage.Listen(i.socket())
	if err != nil {
		i.t.Fatal(err)
	}
	i.server = server
	i.t.Cleanup(server.Stop)
}

func TestTopologyOfNodeFollowsDriver(t *testing.T) {
	i := install(t, fake.Options{Topology: map[string]string{"scenario.example.com/rack": "r1"}})
	node := i.OC("get", "node", "-o", "jsonpath={.items[0].metadata.name}")
	driver := fmt.Sprintf("jsonpath={.spec.drivers[?(@.name==%q)]}", i.name)
	local := "jsonpath={.spec.drivers[?(@.name=='local.csi.slipway.io')].topologyKeys}"
	label := func(key string) []string {
		return []string{"node", node, "-o", `jsonpath={.metadata.labels.scenario\.example\.com/` + key + "}"}
	}
	i.waitText(`"topologyKeys":["scenario.example.com/rack"]`, "csinode", node, "-o", driver)
	i.waitText(`"nodeID":"machine-7"`, "csinode", node, "-o", driver)
	i.waitText("r1", label("rack")...)
	i.waitText("local.csi.slipway.io/node", "csinode", node, "-o", local)
	if got, want := i.OC("get", "csinode", "-o", "jsonpath={.items[*].metadata.name} {.items[*].metadata.ownerReferences[*].uid}"), node+" "+i.OC("get", "node", node, "-o", "jsonpath={.metadata.uid}"); got != want {
		t.Errorf("CSINodes and their owners are %s, want %s", got, want)
	}

	i.restart(fake.Options{NodeID: "machine-8", Topology: map[string]string{"scenario.example.com/zone": "z1"}})
	i.waitText(`"topologyKeys":["scenario.example.com/zone"]`, "csinode", node, "-o", driver)
	i.waitText(`"nodeID":"machine-8"`, "csinode", node, "-o", driver)
	i.waitText("z1", label("zone")...)
	i.waitText("r1", label("rack")...) // the earlier version's label remains, which does no harm
	i.waitText("local.csi.slipway.io/node", "csinode", node, "-o", local)

	i.restart(fake.Options{NodeID: "machine-8", Topology: map[string]string{"node-restriction.kubernetes.io/rack": "r9"}})
	i.waitRegistered(false) // nodes cannot set this label, so the kubelet rejects the driver
	if got := i.OC("get", "node", node, "-o", "jsonpath={.metadata.labels}"); strings.Contains(got, "r9") {
		t.Errorf("the driver has set a label that only an administrator can set: %s", got)
	}
}

func TestPodsAreScheduledByTopology(t *testing.T) {
	i := install(t, fake.Options{Topology: map[string]string{"place.example.com/rack": "r1"}})
	node := i.OC("get", "node", "-o", "jsonpath={.items[0].metadata.name}")
	class := func(name, rack string) string {
		return fmt.Sprintf(`---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %[1]s-%[2]s}, provisioner: %[1]s, volumeBindingMode: WaitForFirstConsumer,
  allowedTopologies: [{matchLabelExpressions: [{key: place.example.com/rack, values: [%[3]s]}]}]}
`, i.name, name, rack)
	}
	claim := func(name string) string {
		return strings.Replace(i.claim(name, "1Gi"), "storageClassName: "+i.name, "storageClassName: "+i.name+"-"+name, 1)
	}
	unscheduled := `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`
	i.Apply(class("here", "r1") + class("elsewhere", "r2") + claim("here") + claim("elsewhere") + pod("here") + pod("elsewhere"))
	i.WaitPodRunning("here")
	i.waitText("0/1 nodes are available", "pod", "elsewhere", "-o", unscheduled)
	if got := len(i.storage.Volumes()); got != 1 {
		t.Errorf("%d volumes were created, want 1", got)
	}
	i.OC("delete", "pod", "here")
	i.OC("label", "node", node, "place.example.com/rack=r2", "--overwrite")
	i.Apply(pod("here"))
	i.waitText("didn't match PersistentVolume's node affinity", "pod", "here", "-o", unscheduled)
	i.OC("label", "node", node, "place.example.com/rack=r1", "--overwrite")
	i.WaitPodRunning("here")
	i.OC("delete", "pod", "--all")
	i.OC("delete", "pvc", "--all")
	i.OC("delete", "storageclass", i.name+"-here", i.name+"-elsewhere")
	i.waitStorage("no volume remains", func() bool { return len(i.storage.Volumes()) == 0 })
}
