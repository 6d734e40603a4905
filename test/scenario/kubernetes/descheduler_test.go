package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// deschedulerRole is the role in section 16.3.2 of the Cluster Administration guide.
const deschedulerRole = `
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1beta1
metadata:
  name: descheduler-cluster-role
rules:
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get", "watch", "list"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["get", "watch", "list", "delete"]
- apiGroups: [""]
  resources: ["pods/eviction"]
  verbs: ["create"]
`

// deschedulerPolicy is the sample policy in section 16.3.3, with the RemoveDuplicates strategy.
const deschedulerPolicy = `
apiVersion: "descheduler/v1alpha1"
kind: "DeschedulerPolicy"
strategies:
  "RemoveDuplicates":
     enabled: true
  "LowNodeUtilization":
     enabled: true
     params:
       nodeResourceUtilizationThresholds:
         thresholds:
           "cpu" : 20
           "memory": 20
           "pods": 20
         targetThresholds:
           "cpu" : 50
           "memory": 50
           "pods": 50
         numberOfNodes: 3
  "RemovePodsViolatingInterPodAntiAffinity":
     enabled: true
  "RemovePodsViolatingNodeAffinity":
    enabled: true
    params:
      nodeAffinityType:
      - "requiredDuringSchedulingIgnoredDuringExecution"
`

// deschedulerJob is the Job in section 16.3.5, with this platform's image.
const deschedulerJob = `
apiVersion: batch/v1
kind: Job
metadata:
  name: descheduler-job
  namespace: kube-system
spec:
  parallelism: 1
  completions: 1
  template:
    metadata:
      name: descheduler-pod
      annotations:
        scheduler.alpha.kubernetes.io/critical-pod: "true"
    spec:
        containers:
        - name: descheduler
          image: localhost/slipway-descheduler:current
          volumeMounts:
          - mountPath: /policy-dir
            name: policy-volume
          command:
          - "/bin/sh"
          - "-ec"
          - |
            /bin/descheduler --policy-config-file /policy-dir/policy.yaml
        restartPolicy: "Never"
        serviceAccountName: descheduler-sa
        volumes:
        - name: policy-volume
          configMap:
            name: descheduler-policy-configmap
`

// controlled returns a ReplicationController with the given number of pods. fields contains
// additional fields for the pods' spec, one field per line.
func controlled(name string, count int, annotation string, fields ...string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ReplicationController
metadata: {name: %s}
spec:
  replicas: %d
  selector: {set: %[1]s}
  template:
    metadata: {labels: {set: %[1]s}, annotations: {%[3]s}}
    spec:
      terminationGracePeriodSeconds: 1
      %[4]s
`, name, count, annotation, strings.Join(fields, "\n      "))
}

// addSpareNode adds a node without a machine, and keeps reporting the node as ready until the test
// ends.
func addSpareNode(t *testing.T, c *kit.Cluster, labels map[string]string) {
	t.Helper()
	addNode(t, c, "spare", labels)
	ctx, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
			}
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
			// Ignore a failed heartbeat, because more heartbeats follow.
			_, _ = c.Client.CoreV1().Nodes().Patch(ctx, "spare", "application/strategic-merge-patch+json", []byte(patch), metav1.PatchOptions{}, "status")
		}
	})
	t.Cleanup(func() { stop(); beats.Wait() })
}

// TestDeschedulerRunsAsJob follows section 16.3 of the Cluster Administration guide.
func TestDeschedulerRunsAsJob(t *testing.T) {
	c := kit.Shared(t)
	name := c.NodeName()
	c.OC("label", "node", name, "deschedule=east")
	t.Cleanup(func() { c.OC("label", "node", name, "deschedule-") })
	c.Apply(controlled("web", 2, "", sleeper()) +
		controlled("critical", 2, `scheduler.alpha.kubernetes.io/critical-pod: ""`, sleeper()) +
		controlled("guarded", 2, "", sleeper()) +
		controlled("east", 1, "", sleeper(), needs("{key: deschedule, operator: In, values: [east]}")) + `
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guarded}
spec: {minAvailable: 2, selector: {matchLabels: {set: guarded}}}
`)
	c.OC("wait", "pod", "--all", "--for", "condition=Ready", "--timeout", "3m")
	c.OC("wait", "pdb", "guarded", "--for", "jsonpath={.status.currentHealthy}=2", "--timeout", "1m")
	web, east := waitPods(c, "set=web", 2), c.OnlyPod("set=east").Name
	addSpareNode(t, c, map[string]string{"deschedule": "east"})
	c.OC("label", "node", name, "deschedule=west", "--overwrite")

	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(deschedulerPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := c.MustSlipway("descheduler", "--policy-config-file", policy, "--kubeconfig", c.Path("admin.kubeconfig"), "--dry-run")
	expect(t, plan, "/"+east+" on node "+name+": evicted by RemovePodsViolatingNodeAffinity", "(dry run)")
	if waitPods(c, "set=web", 2); c.Pod(east).DeletionTimestamp != nil {
		t.Error("a dry run evicted a pod")
	}

	if err := create(t, c, deschedulerRole); err != nil {
		t.Fatal(err)
	}
	c.OC("create", "sa", "descheduler-sa", "-n", "kube-system")
	c.OC("create", "clusterrolebinding", "descheduler-cluster-role-binding", "--clusterrole=descheduler-cluster-role", "--serviceaccount=kube-system:descheduler-sa")
	c.OC("create", "configmap", "descheduler-policy-configmap", "-n", "kube-system", "--from-file="+policy)
	t.Cleanup(func() {
		c.OC("delete", "clusterrole/descheduler-cluster-role", "clusterrolebinding/descheduler-cluster-role-binding")
		c.OC("delete", "-n", "kube-system", "--ignore-not-found", "job/descheduler-job", "sa/descheduler-sa", "configmap/descheduler-policy-configmap")
	})
	// Run the Job's pod on the other node, because the spare node runs no pods.
	job := strings.Replace(deschedulerJob, "serviceAccountName:", fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}\n        serviceAccountName:", name), 1)
	if err := create(t, c.In("kube-system"), job); err != nil {
		t.Fatal(err)
	}
	c.OC("wait", "job", "descheduler-job", "-n", "kube-system", "--for", "condition=Complete", "--timeout", "3m")
	log := c.OC("logs", "job/descheduler-job", "-n", "kube-system")
	expect(t, log, "/"+east+" on node "+name+": evicted by RemovePodsViolatingNodeAffinity", ": evicted by RemoveDuplicates", "stays on node "+name+": ", "disruption budget")
	if strings.Contains(log, "/critical-") || strings.Contains(log, "descheduler-job") {
		t.Errorf("a critical pod was selected:\n%s", log)
	}
	for _, pod := range web {
		if evicted := strings.Contains(log, "/"+pod+" "); evicted {
			waitLeaving(c, pod)
		}
	}
	waitLeaving(c, east)
	c.WaitFor("pod in the east", func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "set=east", FieldSelector: "spec.nodeName=spare"})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}

func TestDeschedulerRunsInIntervals(t *testing.T) {
	c := kit.Shared(t)
	statusHas := func(text string, want bool) {
		c.WaitFor(fmt.Sprintf("status with %q: %t", text, want), func(context.Context) error {
			if status := c.MustSlipway("status"); strings.Contains(status, text) != want {
				return fmt.Errorf("it is\n%s", status)
			}
			return nil
		})
	}
	statusHas("read descheduler policy", true) // the policy file does not exist yet
	c.Apply(controlled("web", 2, "", sleeper()))
	c.OC("wait", "pod", "--all", "--for", "condition=Ready", "--timeout", "3m")
	addSpareNode(t, c, nil)
	file := filepath.Join(filepath.Dir(c.MasterFile()), "descheduler.yaml")
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	write := func(enabled string) {
		t.Helper()
		content := "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies: {RemoveDuplicates: {enabled: " + enabled + "}}\n"
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("maybe")
	statusHas("cannot unmarshal string", true)
	write("true")
	statusHas("descheduler policy", false)
	c.WaitFor("event of an evicted pod", func(ctx context.Context) error {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Descheduled"})
		if err != nil {
			return err
		}
		const text = "by strategy RemoveDuplicates of the descheduler"
		for _, event := range events.Items {
			if event.Type == corev1.EventTypeNormal && strings.HasPrefix(event.InvolvedObject.Name, "web-") && strings.Contains(event.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("%d events exist", len(events.Items))
	})
}
