package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestNodesAreListedAndDescribed(t *testing.T) {
	c := kit.Shared(t)
	name := c.NodeName()
	addNode(t, c, "other", nil)
	c.OC("label", "node", name, "node-role.kubernetes.io/infra=true", "zone=default")
	c.OC("label", "--overwrite", "node", name, "zone=east")
	t.Cleanup(func() { c.OC("label", "node", name, "node-role.kubernetes.io/infra-", "zone-") })

	list := strings.Split(c.OC("get", "nodes"), "\n")
	if got := strings.Fields(list[0]); !slices.Equal(got, []string{"NAME", "STATUS", "ROLES", "AGE", "VERSION"}) {
		t.Errorf("columns %q", got)
	}
	expect(t, c.OC("get", "nodes", "-o", "wide"), "INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME", c.Address.String(), "containerd://")
	item := c.OC("get", "node", name, "--no-headers")
	if fields := strings.Fields(item); strings.Count(item, "\n") != 1 || fields[0] != name || fields[1] != "Ready" || fields[2] != "infra" || !strings.HasPrefix(fields[4], "v1.") {
		t.Errorf("oc get node %s printed %q", name, item)
	}
	c.Apply(pod("shown", "nodeName: "+name, resources("cpu: 10m, memory: 8Mi", "cpu: 20m, memory: 16Mi")))
	c.WaitPodRunning("shown")
	expect(t, c.OC("describe", "node", name),
		"Name:", "Roles:", "infra", "Labels:", "zone=east", "Annotations:", "CreationTimestamp:", "Taints:", "Unschedulable:", "Conditions:",
		"LastHeartbeatTime", "LastTransitionTime", "Reason", "Message", "Addresses:", "InternalIP:", "Hostname:", "Capacity:", "Allocatable:", "System Info:",
		"Non-terminated Pods:", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "shown", "10m (0%)", "Allocated resources:",
		"(Total limits may be over 100 percent, i.e., overcommitted.)", "Events:",
		"OutOfDisk", "kubelet has sufficient disk space available", "Kube-Proxy Version:", "ExternalID:",
	)
	repeatEvent(t, c, "other")
	expect(t, c.OC("describe", "node", "other"), "Kubelet has sufficient memory", "(x5 over 6d)")
	expect(t, c.OC("label", "-h"), "oc label")
	c.OC("delete", "node", "other", "--wait=true")
	if _, err := c.TryOC("get", "node", "other"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("after the deletion: %v", err)
	}
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err) // the cleanup deletes the node
	}
}

// repeatEvent records that a node's kubelet has emitted an event five times in six days.
func repeatEvent(t *testing.T, c *kit.Cluster, node string) {
	t.Helper()
	now := time.Now()
	events := c.Client.CoreV1().Events(metav1.NamespaceDefault)
	event, err := events.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: node + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)},
		Reason:         "NodeHasSufficientMemory", Message: "Kubelet has sufficient memory", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "kubelet", Host: node}, Count: 5,
		FirstTimestamp: metav1.NewTime(now.Add(-6 * 24 * time.Hour)), LastTimestamp: metav1.NewTime(now),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := events.Delete(context.Background(), event.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestNodeReportsItsProperties(t *testing.T) {
	c := kit.Shared(t)
	name := c.NodeName()
	node, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions := map[corev1.NodeConditionType]string{}
	for _, condition := range node.Status.Conditions {
		conditions[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	for kind, want := range map[corev1.NodeConditionType]string{
		corev1.NodeMemoryPressure: "False KubeletHasSufficientMemory", corev1.NodeDiskPressure: "False KubeletHasNoDiskPressure",
		corev1.NodePIDPressure: "False KubeletHasSufficientPID", corev1.NodeReady: "True KubeletReady", "OutOfDisk": "False KubeletHasSufficientDisk",
	} {
		if conditions[kind] != want {
			t.Errorf("condition %s is %q, want %q", kind, conditions[kind], want)
		}
	}
	for _, label := range []string{"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/os"} {
		if want := map[string]string{"arch": "amd64", "os": "linux"}[label[strings.LastIndex(label, "/")+1:]]; node.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, node.Labels[label], want)
		}
	}
	if node.Labels["kubernetes.io/hostname"] != name || node.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"] != "true" {
		t.Errorf("labels %v, annotations %v", node.Labels, node.Annotations)
	}
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		for _, resource := range []corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "pods"} {
			if _, ok := list[resource]; !ok {
				t.Errorf("no %s in %v", resource, list)
			}
		}
	}
	// The memory that is not allocatable is the sum of the platform's reservation and the eviction
	// threshold.
	capacity := node.Status.Capacity.Memory().Value()
	remaining := capacity - node.Status.Allocatable.Memory().Value()
	if want := min(capacity/4, 1<<30) + 100<<20; remaining != want {
		t.Errorf("%d bytes of memory are reserved, want %d", remaining, want)
	}
	if pods := node.Status.Capacity.Pods().Value(); pods != 250 {
		t.Errorf("%d pods, want 250", pods)
	}
	expect(t, c.OC("get", "--raw", "/api/v1/nodes/"+name+"/proxy/configz"), `"maxPods":250`, `"imageGCHighThresholdPercent":90`, `"imageGCLowThresholdPercent":80`)
	info := node.Status.NodeInfo
	for _, value := range []string{
		info.MachineID, info.SystemUUID, info.BootID, info.KernelVersion, info.OSImage, info.OperatingSystem, info.Architecture,
		info.ContainerRuntimeVersion, info.KubeletVersion,
	} {
		if value == "" {
			t.Errorf("a value is missing: %+v", info)
		}
	}
	if port := node.Status.DaemonEndpoints.KubeletEndpoint.Port; port != 10250 {
		t.Errorf("kubelet is at port %d", port)
	}
	for _, reason := range []string{"Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientDisk", "NodeHasSufficientPID", "NodeAllocatableEnforced"} {
		waitEvent(c, "default", name, reason, "")
	}
	inSubnet(t, node.Spec.PodCIDR, netip.MustParsePrefix("10.128.0.0/14"))
	c.Apply(pod("placed", sleeper()))
	inSubnet(t, c.WaitPodRunning("placed").Status.PodIP+"/32", netip.MustParsePrefix(node.Spec.PodCIDR))
}

func inSubnet(t *testing.T, prefix string, network netip.Prefix) {
	t.Helper()
	parsed, err := netip.ParsePrefix(prefix)
	if err != nil || !network.Contains(parsed.Addr()) || parsed.Bits() < network.Bits() {
		t.Errorf("%q is not in %s: %v", prefix, network, err)
	}
}

func TestPodHasPauseContainer(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(pod("one", sleeper()))
	uid := string(c.WaitPodRunning("one").UID)
	processes, err := c.Processes()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{} // programs, keyed by cgroup; each container has its own cgroup
	for _, process := range processes {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", process.PID))
		if err == nil && strings.Contains(string(groups), uid) {
			programs[string(groups)] = process.Program()
		}
	}
	if got := slices.Sorted(maps.Values(programs)); !slices.Equal(got, []string{"pause", "sleep"}) {
		t.Errorf("containers with %q", got)
	}
}

func TestCordonAndDrainRemovePodsFromNode(t *testing.T) {
	c := kit.Shared(t)
	name := c.NodeName()
	t.Cleanup(func() { c.OC("uncordon", name) })
	c.Apply(replicas("managed", sleeper()))
	managed := c.OnlyPod("set=managed").Name
	c.Apply(pod("bare", sleeper()) + "---" + pod("scratch", sleeper("volumeMounts: [{name: data, mountPath: /data}]"), "volumes: [{name: data, emptyDir: {}}]") + `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {daemon: agent}}
  template:
    metadata: {labels: {daemon: agent}}
    spec: {terminationGracePeriodSeconds: 1, ` + sleeper() + `}
`)
	c.WaitPodRunning("bare")
	c.WaitPodRunning("scratch")
	agent := c.OnlyPod("daemon=agent")
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(agent.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == taint && t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds == nil
		}) {
			t.Errorf("the pod of the DaemonSet does not tolerate %s indefinitely: %v", taint, agent.Spec.Tolerations)
		}
	}

	expect(t, c.OC("adm", "manage-node", name, "--schedulable=false"), name, "SchedulingDisabled")
	waitStatus(t, c, name, "Ready,SchedulingDisabled")
	expect(t, c.OC("adm", "manage-node", name, "--list-pods", "--pod-selector=app=bare"), "bare", "Running")
	expect(t, c.OC("adm", "manage-node", "--selector=kubernetes.io/hostname="+name, "--list-pods", "--pod-selector=app=bare", "-o", "json"), `"kind": "PodList"`, `"name": "bare"`)
	makePod(t, c, pod("late", sleeper()))
	wantPlace(t, c, "late", "")
	if c.Pod("bare").DeletionTimestamp != nil || c.Pod(managed).DeletionTimestamp != nil {
		t.Error("cordon ended a pod")
	}
	drain := func(args ...string) (string, error) {
		return c.TryOC(append([]string{"adm", "drain", name}, args...)...)
	}
	_, err := drain("--pod-selector=daemon=agent")
	if err == nil || !strings.Contains(err.Error(), "--ignore-daemonsets") {
		t.Errorf("drain of a DaemonSet's pod: %v", err)
	}
	_, err = drain("--pod-selector=app=bare")
	if err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("drain of a bare pod: %v", err)
	}
	_, err = drain("--pod-selector=app=scratch", "--force")
	if err == nil || !strings.Contains(err.Error(), "--delete-emptydir-data") {
		t.Errorf("drain of a pod with an emptyDir: %v", err)
	}
	output, err := drain("--pod-selector=set=managed", "--dry-run=true")
	if err != nil || !strings.Contains(output, managed) || c.Pod(managed).DeletionTimestamp != nil {
		t.Errorf("dry run: %v, deleted at %v, output:\n%s", err, c.Pod(managed).DeletionTimestamp, output)
	}

	c.OC("adm", "drain", "--selector=kubernetes.io/hostname="+name, "--pod-selector=set=managed", "--grace-period=-1", "--timeout=1m")
	waitLeaving(c, managed)
	if c.Pod("bare").DeletionTimestamp != nil {
		t.Error("a pod that the selector does not match was evicted")
	}
	c.OC("adm", "drain", name, "--force=true", "--ignore-daemonsets=true", "--delete-local-data=true", "--timeout=1m",
		"--pod-selector=app in (bare, scratch)")
	for _, pod := range []string{"bare", "scratch"} {
		waitLeaving(c, pod)
	}
	if c.Pod(agent.Name).DeletionTimestamp != nil {
		t.Error("the pod of the DaemonSet was evicted")
	}
	expect(t, c.OC("adm", "manage-node", name, "--schedulable"), name)
	c.WaitPodRunning("late")
	c.OnlyPod("set=managed")
}

func TestDisruptionBudgetBlocksEviction(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: policy/v1beta1 # as in the guide
kind: PodDisruptionBudget
metadata: {name: budget}
spec:
  minAvailable: 100%
  selector: {matchLabels: {set: guarded}, matchExpressions: [{key: set, operator: Exists}]}
---` + replicas("guarded", sleeper()))
	guarded := c.OnlyPod("set=guarded").Name
	c.OC("wait", "pdb", "budget", "--for", "jsonpath={.status.currentHealthy}=1", "--timeout", "1m")
	output := c.OC("get", "poddisruptionbudget", "--all-namespaces")
	expect(t, output, "NAMESPACE", "NAME", "MIN AVAILABLE", "budget", "100%")
	expect(t, c.OC("describe", "poddisruptionbudget", "budget"), "Min available:", "Selector:", "set=guarded")
	evict := func() error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: guarded, Namespace: c.Namespace}}
		return c.Client.PolicyV1().Evictions(c.Namespace).Evict(t.Context(), eviction)
	}
	if err := evict(); !apierrors.IsTooManyRequests(err) || c.Pod(guarded).DeletionTimestamp != nil {
		t.Errorf("eviction against the budget: %v", err)
	}
	name := c.NodeName()
	t.Cleanup(func() { c.OC("uncordon", name) })
	if _, err := c.TryOC("adm", "drain", name, "--pod-selector=set=guarded", "--timeout=1s"); err == nil || !strings.Contains(err.Error(), "timeout") || c.Pod(guarded).DeletionTimestamp != nil {
		t.Errorf("drain against the budget, for a second: %v", err)
	}
	c.OC("patch", "pdb", "budget", "--type", "merge", "-p", `{"spec":{"minAvailable":0}}`)
	c.WaitFor("the budget to allow an eviction", func(context.Context) error {
		got, err := c.TryOC("get", "pdb", "budget", "-o", "jsonpath={.status.disruptionsAllowed}")
		if err == nil && got != "1" {
			err = fmt.Errorf("it allows %q", got)
		}
		return err
	})
	// The pod ignores SIGTERM, so it runs until the end of the grace period that the command sets.
	c.StartOC("adm", "drain", name, "--pod-selector=set=guarded", "--grace-period=600")
	waitLeaving(c, guarded)
	if period := c.Pod(guarded).DeletionGracePeriodSeconds; period == nil || *period != 600 {
		t.Errorf("the grace period of the pod is %v seconds, want 600", period)
	}
	c.OC("delete", "pod", guarded, "--force", "--grace-period=0")
}
