package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// waitPods waits until the given number of pods that match selector are ready, and none of them is
// being deleted. It returns their names.
func waitPods(c *kit.Cluster, selector string, count int) (names []string) {
	c.WaitFor(fmt.Sprintf("%d ready pods %s", count, selector), func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		names = nil
		for _, pod := range pods.Items {
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if !ready || pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
			names = append(names, pod.Name)
		}
		if len(names) != count {
			return fmt.Errorf("there are %q", names)
		}
		return nil
	})
	return names
}

func TestReplicationControllerKeepsReplicas(t *testing.T) {
	c := kit.Shared(t)
	// The controller must adopt a matching pod.
	c.Apply(strings.Replace(pod("other", sleeper()), "labels: {app: other}", "labels: {app: web, tier: front}", 1))
	c.WaitPodRunning("other")
	c.Apply(replicaController("web", 2))
	first := waitPods(c, "app=web", 2)
	if !slices.Contains(first, "other") {
		t.Errorf("pods %q, want the adopted pod among them", first)
	}
	c.OC("delete", "pod", "other", "--wait=false")
	if second := waitPods(c, "app=web", 2); slices.Contains(second, "other") {
		t.Errorf("pods %q", second)
	}
	expect(t, c.OC("describe", "rc", "web"), "Replicas:", "2 current / 2 desired", "Created pod: web-")
	c.OC("scale", "rc", "web", "--replicas", "1")
	waitPods(c, "app=web", 1)
	expectRejected(t, c, strings.Replace(replicaController("once", 1), "spec: {termination", "spec: {restartPolicy: Never, termination", 1), `supported values: "Always"`)
}

func TestReplicaSetUsesSetBasedSelector(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
    matchExpressions: [{key: tier, operator: In, values: [front, middle]}]
  template:
    metadata: {labels: {app: web, tier: front}}
    spec: {terminationGracePeriodSeconds: 1, ` + sleeper() + `}
---` + strings.Replace(pod("same-app", sleeper()), "labels: {app: same-app}", "labels: {app: web, tier: back}", 1))
	names := waitPods(c, "app=web,tier in (front, middle)", 2)
	if slices.Contains(names, "same-app") || len(waitPods(c, "app=web", 3)) != 3 {
		t.Errorf("pods %q", names)
	}
	// If a pod's label changes, the ReplicaSet must release and replace the pod.
	c.OC("label", "--overwrite", "pod", names[0], "tier=back")
	waitPods(c, "app=web,tier=front", 2)
	if owned := c.Pod(names[0]).OwnerReferences; len(owned) > 0 {
		t.Errorf("owned by %v", owned)
	}
}

func TestDeploymentReplacesPods(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "deployment", "web", "--image", kit.ToolsImage, "--replicas", "2", "--", "sleep", "infinity")
	before := waitPods(c, "app=web", 2)
	c.OC("set", "env", "deployment/web", "COLOR=blue")
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	sets := c.OC("get", "replicasets", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.ownerReferences[0].name}")
	if sets != "web web" {
		t.Errorf("replica sets of %q, want two of the deployment", sets)
	}
	c.OC("rollout", "undo", "deployment/web")
	c.OC("rollout", "status", "deployment/web", "--timeout", "2m")
	for _, name := range podNames(t, c, "app=web") {
		if slices.Contains(before, name) {
			continue
		}
		if env := c.Pod(name).Spec.Containers[0].Env; len(env) > 0 && c.Pod(name).DeletionTimestamp == nil {
			t.Errorf("pod %s has %v after the rollback", name, env)
		}
	}
}

func TestStatefulSetGivesPodsStableNames(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      ` + container("sleep 1; touch /tmp/ready; sleep infinity", "readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1}") + `
`)
	second := c.WaitPodRunning("db-1")
	first := c.Pod("db-0")
	var ready metav1.Time
	for _, condition := range first.Status.Conditions {
		if condition.Type == corev1.PodReady {
			ready = condition.LastTransitionTime
		}
	}
	if second.CreationTimestamp.Before(&ready) {
		t.Errorf("db-1 was created at %v, before db-0 was ready at %v", second.CreationTimestamp, ready)
	}
	if name := c.Exec("db-1", "hostname"); name != "db-1\n" {
		t.Errorf("host name %q", name)
	}
	c.OC("delete", "pod", "db-0")
	if pod := c.WaitPodRunning("db-0"); pod.UID == first.UID {
		t.Error("db-0 was not recreated")
	}
	c.OC("scale", "statefulset", "db", "--replicas", "1")
	waitLeaving(c, "db-1")
	if c.Pod("db-0").DeletionTimestamp != nil {
		t.Error("the first pod was deleted before the last")
	}
}

func TestPodsOfDaemonSetsAreAlwaysRestarted(t *testing.T) {
	c := kit.Shared(t)
	for _, policy := range []string{"OnFailure", "Never"} {
		expectRejected(t, c, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {daemon: agent}}, template: {"+
			"metadata: {labels: {daemon: agent}}, spec: {restartPolicy: "+policy+", "+sleeper()+"}}}}", `restartPolicy: Unsupported value: "`+policy+`": supported values: "Always"`)
	}
}

func TestJobRunsUntilCompletions(t *testing.T) {
	c := kit.Shared(t)
	job := `
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  completions: 2
  template:
    metadata: {labels: {job: %[1]s}}
    spec: {restartPolicy: %[2]s, %[3]s}
`
	c.Apply(fmt.Sprintf(job, "count", "Never", container("echo done")) + "---" +
		fmt.Sprintf(job, "again", "OnFailure", container("echo done")))
	for _, name := range []string{"count", "again"} {
		c.OC("wait", "job", name, "--for", "condition=Complete", "--timeout", "2m")
		if got := c.OC("get", "job", name, "-o", "jsonpath={.status.succeeded}"); got != "2" {
			t.Errorf("job %s: %s completions, want 2", name, got)
		}
	}
	pods := podNames(t, c, "job=count")
	if len(pods) != 2 {
		t.Fatalf("pods %q", pods)
	}
	if log := c.OC("logs", pods[0]); log != "done\n" {
		t.Errorf("log of a pod that has ended: %q", log)
	}
	expectRejected(t, c, fmt.Sprintf(job, "always", "Always", sleeper()), `restartPolicy: Required value`)
}

// podNames returns the names of all pods that match selector.
func podNames(t *testing.T, c *kit.Cluster, selector string) (names []string) {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}
