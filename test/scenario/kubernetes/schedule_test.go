package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// needs returns a required node affinity with a single term that contains all of the given
// expressions about node labels. wants returns a preferred node affinity with the given weighted
// terms.
func needs(expressions string) string { return terms("{matchExpressions: [" + expressions + "]}") }

func terms(terms string) string {
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
}

func wants(weighted ...string) string {
	return "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(weighted, ", ") + "]}}"
}

func TestNodeSelectorsAndAffinitySelectNode(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "east", map[string]string{"zone": "us-east", "disk": "ssd", "size": "10"})
	addNode(t, c, "west", map[string]string{"zone": "us-west", "size": "20"})
	const anyZone = "{key: zone, operator: Exists}"
	tests := []struct{ name, field, want string }{
		{"selector", "nodeSelector: {zone: us-west}", "west"},
		{"selector of two pairs", "nodeSelector: {zone: us-east, disk: ssd}", "east"},
		{"selector with one wrong pair", "nodeSelector: {zone: us-west, disk: ssd}", ""},
		{"In", needs("{key: zone, operator: In, values: [us-west, eu]}"), "west"},
		{"NotIn", needs(anyZone + ", {key: zone, operator: NotIn, values: [us-west]}"), "east"},
		{"Exists", needs("{key: disk, operator: Exists}"), "east"},
		{"DoesNotExist", needs(anyZone + ", {key: disk, operator: DoesNotExist}"), "west"},
		{"Gt", needs("{key: size, operator: Gt, values: ['15']}"), "west"},
		{"Lt", needs("{key: size, operator: Lt, values: ['15']}"), "east"},
		{"expressions are all required", needs("{key: zone, operator: In, values: [us-west]}, {key: disk, operator: Exists}"), ""},
		{
			"one matching term is sufficient",
			terms("{matchExpressions: [{key: zone, operator: In, values: [eu]}]}, {matchExpressions: [{key: disk, operator: Exists}]}"), "east",
		},
		{"selector and affinity are both required", "nodeSelector: {zone: us-west}\n  " + needs("{key: disk, operator: Exists}"), ""},
		{
			"the greater weight wins",
			wants("{weight: 1, preference: {matchExpressions: [{key: disk, operator: Exists}]}}",
				"{weight: 100, preference: {matchExpressions: [{key: zone, operator: In, values: [us-west]}]}}"), "west",
		},
		{"no such zone", needs("{key: zone, operator: In, values: [eu]}"), ""},
	}
	for i, tt := range tests {
		makePod(t, c, pod(fmt.Sprintf("pod-%d", i), sleeper(), tt.field))
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantPlace(t, c.For(t), fmt.Sprintf("pod-%d", i), tt.want) })
	}
	waitEvent(c, c.Namespace, fmt.Sprintf("pod-%d", len(tests)-1), "FailedScheduling", "didn't match Pod's node affinity/selector")
	expect(t, c.OC("get", "events"), "LAST SEEN", "FailedScheduling")
	expect(t, c.OC("get", "pod"), "READY", "pod-0")
	if wide := c.OC("get", "pod", "pod-0", "-o", "wide"); !strings.Contains(wide, "NODE") || !strings.Contains(wide, "west") {
		t.Errorf("oc get pod -o wide does not show the node:\n%s", wide)
	}
	// Scheduled pods must stay on their node when the node's labels change.
	c.OC("label", "node", "west", "zone-", "disk=hdd")
	if got := c.Pod("pod-0"); got.Spec.NodeName != "west" || got.DeletionTimestamp != nil {
		t.Errorf("pod-0 is on %q, deleted at %v", got.Spec.NodeName, got.DeletionTimestamp)
	}
	expectRejected(t, c, pod("heavy", sleeper(), wants("{weight: 101, preference: {matchExpressions: ["+anyZone+"]}}")), "must be in the range 1-100")
}

// near returns an affinity term that selects pods by the value of their app label.
func near(app, topology string) string {
	return by("{key: app, operator: In, values: ["+app+"]}", topology)
}

// by returns an affinity term that selects pods with an expression about their labels.
func by(expression, topology string) string {
	return fmt.Sprintf("{topologyKey: %s, labelSelector: {matchExpressions: [%s]}}", topology, expression)
}

func TestPodAffinityAndAntiAffinitySelectNode(t *testing.T) {
	c := kit.Shared(t)
	const host, zone = corev1.LabelHostname, "zone"
	for name, labels := range map[string]string{"one": "a", "two": "a", "three": "b"} {
		addNode(t, c, name, map[string]string{zone: labels, "rack": "yes"})
	}
	makePod(t, c, pod("cache", sleeper(), "nodeSelector: {kubernetes.io/hostname: one}"))
	wantPlace(t, c, "cache", "one")
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	rule := func(kind, phase, rules string) string {
		return fmt.Sprintf("affinity: {%s: {%s: [%s]}}", kind, phase, rules)
	}
	tests := []struct{ name, app, field, selector, want string }{
		{"Exists", "exists", rule("podAffinity", required, by("{key: app, operator: Exists}", host)), "rack: 'yes'", "one"},
		{"NotIn", "not-in", rule("podAffinity", required, by("{key: app, operator: NotIn, values: [nobody]}", host)), "rack: 'yes'", "one"},
		{"DoesNotExist", "lacks", rule("podAffinity", required, by("{key: other, operator: DoesNotExist}", host)), "rack: 'yes'", "one"},
		{"on the node of the pod", "near", rule("podAffinity", required, near("cache", host)), "rack: 'yes'", "one"},
		{"in the zone of the pod, on another node", "zonal", rule("podAffinity", required, near("cache", zone)), host + ": two", "two"},
		{"in a different zone", "far", rule("podAntiAffinity", required, near("cache", zone)), "rack: 'yes'", "three"},
		{"no pod matches the affinity", "alone", rule("podAffinity", required, near("nobody", host)), "rack: 'yes'", ""},
		{"not on the node of the pod", "repelled", rule("podAntiAffinity", required, near("cache", host)), host + ": one", ""},
		{"preferably on the node of the pod", "fond", rule("podAffinity", preferred, "{weight: 100, podAffinityTerm: "+near("cache", host)+"}"), zone + ": a", "one"},
		{"preferably not on the node of the pod", "shy", rule("podAntiAffinity", preferred, "{weight: 100, podAffinityTerm: "+near("cache", host)+"}"), zone + ": a", "two"},
		{"required node, although another one is preferred", "brave", rule("podAntiAffinity", preferred, "{weight: 100, podAffinityTerm: "+near("cache", host)+"}"), host + ": one", "one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := c.For(t)
			makePod(t, c, pod(tt.app, sleeper(), tt.field, "nodeSelector: {"+tt.selector+"}"))
			wantPlace(t, c, tt.app, tt.want)
		})
	}
	// Two pods with anti-affinity, such as two registries on infrastructure nodes, must not share a
	// node. Therefore, the second pod must wait.
	registry := rule("podAntiAffinity", required, near("registry-1, registry-2", host))
	for i, want := range []string{"three", ""} {
		name := fmt.Sprintf("registry-%d", i+1)
		makePod(t, c, pod(name, sleeper(), registry, "nodeSelector: {zone: b}"))
		wantPlace(t, c, name, want)
	}
}

func TestPodsAreScheduledByResourceRequests(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "full", map[string]string{"rack": "yes"})
	addNode(t, c, "free", map[string]string{"rack": "yes"})
	requests := func(cpu, memory string) string {
		return sleeper(fmt.Sprintf("resources: {requests: {cpu: %q, memory: %s}}", cpu, memory))
	}
	const full, racks = "nodeSelector: {kubernetes.io/hostname: full}", "nodeSelector: {rack: 'yes'}"
	port := sleeper("ports: [{containerPort: 80, hostPort: 8000}]")
	disk := "volumes: [{name: disk, iscsi: {targetPortal: 192.0.2.9, iqn: 'iqn.2026-01.com.example:disk', lun: 0}}]"
	tests := []struct {
		name, pod, want string
		fields          []string
	}{
		{"half of the node", "half", "full", []string{requests("2", "4Gi"), full}},
		{"the emptier node", "next", "free", []string{requests("100m", "200Mi"), racks}},
		{"more CPU than remains", "cpu", "", []string{requests("2100m", "1Gi"), full}},
		{"more memory than remains", "memory", "", []string{requests("1", "5Gi"), full}},
		{"as much as remains, regardless of the usage", "rest", "full", []string{requests("2", "4Gi"), full}},
		{"more than any node has", "huge", "", []string{requests("100000", "1Gi")}},
		{"a device that no node has", "device", "", []string{sleeper("resources: {limits: {nvidia.com/gpu: 1}}")}},
		{"a port of the host", "router", "full", []string{port, full}},
		{"the same port of another host", "second", "free", []string{port, racks}},
		{"the same port of the same host", "third", "", []string{port, full}},
		{"a disk", "disk", "full", []string{sleeper(), full, disk}},
		{"the same disk on the same node", "sharing", "", []string{sleeper(), full, disk}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := c.For(t)
			makePod(t, c, pod(tt.pod, tt.fields...))
			wantPlace(t, c, tt.pod, tt.want)
		})
	}
}

func TestNodeRespectsPodLimit(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "small", nil)
	c.OC("patch", "node", "small", "--subresource", "status", "-p", `{"status":{"capacity":{"pods":"2"},"allocatable":{"pods":"2"}}}`)
	for i, want := range []string{"small", "small", ""} {
		name := fmt.Sprintf("pod-%d", i)
		makePod(t, c, pod(name, sleeper(), "nodeSelector: {kubernetes.io/hostname: small}"))
		wantPlace(t, c, name, want)
	}
	waitEvent(c, c.Namespace, "pod-2", "FailedScheduling", "Too many pods")
}

func TestVolumesSelectNode(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "north", map[string]string{corev1.LabelTopologyZone: "n", "rack": "yes"})
	addNode(t, c, "south", map[string]string{corev1.LabelTopologyZone: "s", "rack": "yes"})
	volume := func(name, labels, more string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s, labels: {%s}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: %[1]s
  hostPath: {path: /nowhere}
  %[3]s
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec: {accessModes: [ReadWriteOnce], storageClassName: %[1]s, resources: {requests: {storage: 1Gi}}}
---
`, name, labels, more)
	}
	c.Apply(volume("zonal", corev1.LabelTopologyZone+": s", "") +
		volume("local", "", "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [north]}]}]}}") +
		volume("late", "", "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [south]}]}]}}") + `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`)
	t.Cleanup(func() {
		c.OC("delete", "storageclass", "late")
		c.OC("delete", "persistentvolume", "zonal", "local", "late", "--wait=false")
	})
	for _, claim := range []string{"zonal", "local"} {
		c.OC("wait", "pvc", claim, "--for", "jsonpath={.status.phase}=Bound", "--timeout", "1m")
	}
	for claim, want := range map[string]string{"zonal": "south", "local": "north", "late": "south"} {
		makePod(t, c, pod(claim, sleeper(), "nodeSelector: {rack: 'yes'}", "volumes: [{name: data, persistentVolumeClaim: {claimName: "+claim+"}}]"))
		waitPlace(c, claim, want)
	}
	makePod(t, c, pod("elsewhere", sleeper(), "nodeSelector: {kubernetes.io/hostname: south}", "volumes: [{name: data, persistentVolumeClaim: {claimName: local}}]"))
	wantPlace(t, c, "elsewhere", "")
}

// TestOtherSchedulerBindsItsPods acts as a second scheduler. It binds the pod that specifies the
// second scheduler's name. The default scheduler must ignore this pod.
func TestOtherSchedulerBindsItsPods(t *testing.T) {
	c := kit.Shared(t)
	makePod(t, c, pod("mine", sleeper(), "schedulerName: scenario"))
	makePod(t, c, pod("theirs", sleeper()))
	c.WaitPodRunning("theirs")
	if event := waitEvent(c, c.Namespace, "theirs", "Scheduled", "Successfully assigned"); event.Source.Component+event.ReportingController == "" ||
		!strings.Contains(event.Source.Component+event.ReportingController, "default-scheduler") {
		t.Errorf("event of %q, %q, want the default scheduler", event.Source.Component, event.ReportingController)
	}
	if pod := c.Pod("mine"); pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0 {
		t.Errorf("another scheduler handled the pod: node %q, conditions %v", pod.Spec.NodeName, pod.Status.Conditions)
	}
	bind := func() error {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Target: corev1.ObjectReference{Kind: "Node", Name: c.NodeName()}}
		return c.Client.CoreV1().Pods(c.Namespace).Bind(t.Context(), binding, metav1.CreateOptions{})
	}
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	c.WaitPodRunning("mine")
	if err := bind(); err == nil || !strings.Contains(err.Error(), "already assigned") {
		t.Errorf("a bound pod was bound again: %v", err)
	}
	// A pod that specifies its node does not need a scheduler.
	makePod(t, c, pod("named", sleeper(), "nodeName: "+c.NodeName()))
	c.WaitPodRunning("named")
}

// TestLabelsOfGuideSelectNodes uses labels as in the Cluster Administration guide.
func TestLabelsOfGuideSelectNodes(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "gpu", map[string]string{"openshift.com/gpu-accelerator": "true", "failure-domain.beta.kubernetes.io/zone": "z1"})
	addNode(t, c, "log", map[string]string{"logging-infra-fluentd": "true", "failure-domain.beta.kubernetes.io/zone": "z2"})
	makePod(t, c, pod("training", sleeper(), `nodeSelector: {openshift.com/gpu-accelerator: "true"}`))
	wantPlace(t, c, "training", "gpu")
	const zone = "failure-domain.beta.kubernetes.io/zone"
	affinity := func(kind string) string {
		return "affinity: {" + kind + ": {requiredDuringSchedulingIgnoredDuringExecution: [" + near("training", zone) + "]}}"
	}
	const logs = `nodeSelector: {logging-infra-fluentd: "true"}`
	makePod(t, c, pod("fluentd", sleeper(), logs, affinity("podAntiAffinity")))
	wantPlace(t, c, "fluentd", "log")
	makePod(t, c, pod("same-zone", sleeper(), logs, affinity("podAffinity")))
	wantPlace(t, c, "same-zone", "")
}
