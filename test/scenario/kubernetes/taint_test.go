package kubernetes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func tolerates(tolerations ...string) string {
	return "tolerations: [" + strings.Join(tolerations, ", ") + "]"
}

func TestTaintsKeepPodsAway(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "tainted", map[string]string{"rack": "yes"})
	const nodeSelector = "nodeSelector: {kubernetes.io/hostname: tainted}"
	makePod(t, c, pod("before", sleeper(), nodeSelector))
	wantPlace(t, c, "before", "tainted")
	c.OC("adm", "taint", "nodes", "tainted", "dedicated=team:NoSchedule", "disk=ssd:NoSchedule")
	const team, disk = "{key: dedicated, value: team, effect: NoSchedule}", "{key: disk, operator: Exists}"
	for i, tt := range []struct{ name, tolerations, want string }{
		{"no toleration", "tolerations: []", ""},
		{"only one of two taints is tolerated", tolerates(team), ""},
		{"both taints are tolerated, one with the default Equal, one with Exists", tolerates(team, disk), "tainted"},
		{"another value", tolerates("{key: dedicated, value: other}", disk), ""},
		{"another effect", tolerates("{key: dedicated, value: team, effect: NoExecute}", disk), ""},
		{"everything", tolerates("{operator: Exists}"), "tainted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, name := c.For(t), fmt.Sprintf("pod-%d", i)
			makePod(t, c, pod(name, sleeper(), nodeSelector, tt.tolerations))
			wantPlace(t, c, name, tt.want)
		})
	}
	waitEvent(c, c.Namespace, "pod-0", "FailedScheduling", "untolerated taint")
	if c.Pod("before").DeletionTimestamp != nil {
		t.Error("NoSchedule ended a pod that existed before")
	}
	// The pod tolerates all taints except the PreferNoSchedule taint, so the scheduler prefers
	// another node.
	addNode(t, c, "plain", map[string]string{"rack": "yes"})
	c.OC("taint", "nodes", "tainted", "disk-", "dedicated-", "old=yes:PreferNoSchedule")
	makePod(t, c, pod("choosing", sleeper(), "nodeSelector: {rack: 'yes'}"))
	wantPlace(t, c, "choosing", "plain")
	makePod(t, c, pod("without-choice", sleeper(), nodeSelector))
	wantPlace(t, c, "without-choice", "tainted")
	for name, taint := range map[string]string{"key": strings.Repeat("k", 254) + "=v:NoSchedule", "value": "k=" + strings.Repeat("v", 64) + ":NoSchedule"} {
		if _, err := c.TryOC("taint", "nodes", "plain", taint); err == nil {
			t.Errorf("a taint with a %s that is too long was accepted", name)
		}
	}
}

// replicas returns a manifest for a ReplicaSet with one pod.
func replicas(name string, fields ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %s}
spec:
  replicas: 1
  selector: {matchLabels: {set: %[1]s}}
  template:
    metadata: {labels: {set: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      %s
`, name, strings.Join(fields, "\n      "))
}

func TestNoExecuteEvictsIntolerantPods(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "leaving", map[string]string{"rack": "yes"})
	const nodeSelector = "nodeSelector: {rack: 'yes'}"
	const taint = "{key: maintenance, operator: Exists, effect: NoExecute"
	makePod(t, c, pod("bare", sleeper(), nodeSelector))
	makePod(t, c, pod("tolerant", sleeper(), nodeSelector, tolerates(taint+"}")))
	makePod(t, c, pod("patient", sleeper(), nodeSelector, tolerates(taint+", tolerationSeconds: 2}")))
	// These tolerations are needed because the node becomes not ready after some time without a
	// heartbeat.
	const unready = "{key: node.kubernetes.io/not-ready, operator: Exists}, {key: node.kubernetes.io/unreachable, operator: Exists}"
	makePod(t, c, pod("lucky", sleeper(), nodeSelector, tolerates(taint+", tolerationSeconds: 3600}", unready)))
	c.Apply(replicas("managed", sleeper(), nodeSelector))
	for _, name := range []string{"bare", "tolerant", "patient", "lucky"} {
		wantPlace(t, c, name, "leaving")
	}
	// The controller must also replace a failed pod.
	failed := onlyPending(c, "set=managed")
	c.OC("patch", "pod", failed, "--subresource", "status", "-p", `{"status":{"phase":"Failed"}}`)
	onlyPending(c, "set=managed")
	c.OC("taint", "nodes", "leaving", "maintenance=yes:NoExecute")
	waitLeaving(c, "bare")
	if c.Pod("patient").DeletionTimestamp != nil {
		t.Error("tolerationSeconds did not delay the eviction")
	}
	waitLeaving(c, "patient")
	for _, name := range []string{"tolerant", "lucky"} {
		if c.Pod(name).DeletionTimestamp != nil {
			t.Errorf("pod %s tolerates the taint and was evicted", name)
		}
	}
	makePod(t, c, pod("new", sleeper(), nodeSelector))
	wantPlace(t, c, "new", "")
	// The controller must replace its pod. The new pod is scheduled when another node exists.
	addNode(t, c, "staying", map[string]string{"rack": "yes"})
	c.WaitFor("replacement on the other node", func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "set=managed"})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "staying" }) {
			return fmt.Errorf("none of %d pods exists", len(pods.Items))
		}
		return nil
	})
	bare, err := c.Client.CoreV1().Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=bare", FieldSelector: "spec.nodeName!=leaving"})
	if err != nil || len(bare.Items) > 0 {
		t.Errorf("a bare pod was recreated: %d, %v", len(bare.Items), err)
	}
	c.OC("taint", "nodes", "leaving", "maintenance-")
	waitEvent(c, c.Namespace, "lucky", "TaintManagerEviction", "Cancelling deletion of Pod")
}

// TestProjectAddsTolerationsToPods dedicates a node to a project's users with the taint from the
// administration guide. The PodTolerationRestriction admission plugin adds the project's
// tolerations to its pods.
func TestProjectAddsTolerationsToPods(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "dedicated", map[string]string{"dedicated": "groupName"})
	c.OC("adm", "taint", "nodes", "dedicated", "dedicated=groupName:NoSchedule")
	const nodeSelector = "nodeSelector: {dedicated: groupName}"
	makePod(t, c, pod("stranger", sleeper(), nodeSelector))
	wantPlace(t, c, "stranger", "")
	c.OC("annotate", "namespace", c.Namespace,
		`scheduler.alpha.kubernetes.io/defaultTolerations=[{"key":"dedicated","operator":"Equal","value":"groupName","effect":"NoSchedule"}]`,
		`scheduler.alpha.kubernetes.io/tolerationsWhitelist=[{"operator":"Exists","effect":"NoSchedule"},{"operator":"Exists","effect":"NoExecute"}]`)
	c.WaitFor("tolerations of a new pod", func(context.Context) error {
		c.OC("delete", "pod", "member", "--ignore-not-found", "--force", "--grace-period=0")
		makePod(t, c, pod("member", sleeper(), nodeSelector))
		for _, toleration := range c.Pod("member").Spec.Tolerations {
			if toleration.Key == "dedicated" && toleration.Value == "groupName" {
				return nil
			}
		}
		return fmt.Errorf("it has %v", c.Pod("member").Spec.Tolerations)
	})
	wantPlace(t, c, "member", "dedicated")
	expectRejected(t, c, pod("other", sleeper(), tolerates("{key: disk, operator: Exists, effect: PreferNoSchedule}")), "pod tolerations", "whitelist")
}

func TestPodsAreNotScheduledToUnhealthyNode(t *testing.T) {
	c := kit.Shared(t)
	name := "unhealthy"
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "silent", Labels: map[string]string{corev1.LabelHostname: "silent"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	makePod(t, c, pod("waiting", sleeper(), "nodeSelector: {kubernetes.io/hostname: silent}"))
	wantPlace(t, c, "waiting", "")
	waitStatus(t, c, "silent", "Unknown")
	c.OC("delete", "node", "silent")

	addNode(t, c, name, nil)
	const nodeSelector = "nodeSelector: {kubernetes.io/hostname: unhealthy}"
	waitStatus(t, c, name, "Ready")
	const toleration = "{key: node.kubernetes.io/%s, operator: Exists, effect: NoExecute, tolerationSeconds: 0}"
	makePod(t, c, pod("first", sleeper(), nodeSelector, tolerates(fmt.Sprintf(toleration, "not-ready"))))
	makePod(t, c, pod("second", sleeper(), nodeSelector, tolerates("{key: node.kubernetes.io/not-ready, operator: Exists}", fmt.Sprintf(toleration, "unreachable"))))
	makePod(t, c, pod("third", sleeper(), nodeSelector))
	for _, pod := range []string{"first", "second", "third"} {
		wantPlace(t, c, pod, name)
	}
	for _, tt := range []struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		taints    []string
		taint     string
		evicted   string
	}{
		{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, []string{"node.kubernetes.io/network-unavailable:NoSchedule"}, "Ready", ""},
		{corev1.NodeDiskPressure, corev1.ConditionTrue, []string{"node.kubernetes.io/disk-pressure:NoSchedule"}, "Ready", ""},
		{corev1.NodeReady, corev1.ConditionFalse, []string{"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"}, "NotReady", "first"},
		{corev1.NodeReady, corev1.ConditionUnknown, []string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}, "NotReady", "second"},
	} {
		t.Run(fmt.Sprintf("%s %s", tt.condition, tt.status), func(t *testing.T) {
			c := c.For(t)
			setCondition(t, c, name, tt.condition, tt.status)
			waitTaints(c, name, tt.taints...)
			waitStatus(t, c, name, tt.taint)
			pod := "new-" + strings.ToLower(fmt.Sprint(tt.condition, "-", tt.status))
			makePod(t, c, `{apiVersion: v1, kind: Pod, metadata: {name: `+pod+`}, spec: {`+nodeSelector+`, `+sleeper()+`}}`)
			wantPlace(t, c, pod, "")
			if tt.evicted != "" {
				waitLeaving(c, tt.evicted)
			}
			if tt.condition != corev1.NodeReady {
				setCondition(t, c, name, tt.condition, corev1.ConditionFalse)
				waitTaints(c, name)
				waitPlace(c, pod, name)
			}
		})
	}
	// The default tolerations apply for five minutes.
	third := c.Pod("third")
	if third.DeletionTimestamp != nil || len(third.Spec.Tolerations) != 2 {
		t.Fatalf("deleted at %v, tolerations %v", third.DeletionTimestamp, third.Spec.Tolerations)
	}
	for i, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		got := third.Spec.Tolerations[i]
		if got.Key != key || got.Effect != corev1.TaintEffectNoExecute || got.TolerationSeconds == nil || *got.TolerationSeconds != 300 {
			t.Errorf("toleration %v, want of %s for 300 seconds", got, key)
		}
	}
}

// waitStatus waits until `oc get nodes` shows the given status for the node.
func waitStatus(t *testing.T, c *kit.Cluster, node, want string) {
	t.Helper()
	c.WaitFor(fmt.Sprintf("status %s of node %s", want, node), func(context.Context) error {
		line, err := c.TryOC("get", "node", node, "--no-headers")
		if err != nil {
			return err
		}
		if got := strings.Fields(line)[1]; got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

func TestNodesGetDistinctSubnets(t *testing.T) {
	c := kit.Shared(t)
	addNode(t, c, "first", nil)
	addNode(t, c, "second", nil)
	owner, network := map[netip.Prefix]string{}, netip.MustParsePrefix("10.128.0.0/14")
	for _, name := range []string{c.NodeName(), "first", "second"} {
		c.WaitFor("subnet of "+name, func(ctx context.Context) error {
			node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			subnet, err := netip.ParsePrefix(node.Spec.PodCIDR)
			if err != nil {
				return err
			}
			if other := owner[subnet]; other != "" || !network.Contains(subnet.Addr()) || subnet.Bits() != 23 {
				t.Errorf("node %s has %s, want a /23 of %s that differs from the subnet of %q", name, subnet, network, other)
			}
			owner[subnet] = name
			return nil
		})
	}
}

// onlyPending waits until exactly one pod that matches selector is pending on a node, and all other
// matching pods have terminated. It returns the pending pod's name.
func onlyPending(c *kit.Cluster, selector string) (name string) {
	c.WaitFor("one pending pod "+selector, func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, FieldSelector: "status.phase=Pending,spec.nodeName!="})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		name = pods.Items[0].Name
		return nil
	})
	return name
}
