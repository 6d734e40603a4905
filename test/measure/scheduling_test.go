package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	schedulingNodes, schedulingPods = 100, 1000
	// schedulingRounds is the number of measurements per scheduler, excluding the first
	// measurement.
	schedulingRounds = 3
	// schedulingAim is the minimum ratio of the scheduler's pods per second to upstream's pods per
	// second.
	schedulingAim = 0.95
	// schedulingCreators is the number of concurrent requests that create pods.
	schedulingCreators = 16
)

// fastScheduler configures the scheduler with a policy in a ConfigMap. It raises the request limit,
// because the default of 50 requests per second would hide a difference.
const fastScheduler = `kubernetesMasterConfig: {schedulerArguments: {policy-configmap: [scheduler-policy], kube-api-qps: ["5000"], kube-api-burst: ["5000"]}}`

// documentPolicy is the default scheduler.json (Cluster Administration 3.11, section 16.2.4).
const documentPolicy = `{
"apiVersion": "v1", "kind": "Policy",
"predicates": [
	{"name": "NoVolumeZoneConflict"}, {"name": "MaxEBSVolumeCount"}, {"name": "MaxGCEPDVolumeCount"}, {"name": "MaxAzureDiskVolumeCount"},
	{"name": "MatchInterPodAffinity"}, {"name": "NoDiskConflict"}, {"name": "GeneralPredicates"}, {"name": "PodToleratesNodeTaints"},
	{"name": "Region", "argument": {"serviceAffinity": {"labels": ["region"]}}}
],
"priorities": [
	{"name": "SelectorSpreadPriority", "weight": 1}, {"name": "InterPodAffinityPriority", "weight": 1}, {"name": "LeastRequestedPriority", "weight": 1},
	{"name": "BalancedResourceAllocation", "weight": 1}, {"name": "NodePreferAvoidPodsPriority", "weight": 10000},
	{"name": "NodeAffinityPriority", "weight": 1}, {"name": "TaintTolerationPriority", "weight": 1},
	{"name": "Zone", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "zone"}}}
]}`

// TestScheduling compares the control plane's scheduler with upstream's kube-scheduler program.
// Both run in the same cluster, and each schedules the pods that specify its scheduler name. The
// measurements alternate.
func TestScheduling(t *testing.T) {
	r := newTable("scheduling")
	c := kit.Start(t, kit.Options{Master: fastScheduler})
	client := unlimited(t, c)
	startHollow(t, client, schedulingNodes, hollow.renew)
	startUpstreamScheduler(t, c)
	c.OC("create", "namespace", loadNamespace)
	// The service selects pods with the label app=app.
	c.OC("create", "service", "clusterip", "app", "--tcp=80", "-n", loadNamespace)

	compare := func(rules string) {
		var own, upstream []time.Duration
		for round := range schedulingRounds + 1 {
			a, b := schedule(t, client, corev1.DefaultSchedulerName), schedule(t, client, upstreamScheduler)
			if round > 0 { // discard the first measurement, because it loads programs into memory
				own, upstream = append(own, a), append(upstream, b)
			}
		}
		rate := func(all []time.Duration) float64 { return schedulingPods / median(all).Seconds() }
		r.add("pods scheduled, "+rules, "%.0f/s", rate(own))
		r.add("pods scheduled, upstream's program, same rounds", "%.0f/s", rate(upstream))
		r.least("ratio, "+rules, rate(own)/rate(upstream), schedulingAim)
	}
	compare("default rules")
	c.OC("create", "configmap", "scheduler-policy", "-n", "kube-system", "--from-literal=policy.cfg="+documentPolicy)
	c.WaitFor("effective policy", func(context.Context) error {
		rules, err := os.ReadFile(c.Path("run", "scheduler.yaml"))
		if err == nil && !strings.Contains(string(rules), "Region") {
			err = fmt.Errorf("the rules are the default ones")
		}
		return err
	})
	compare("the documents' policy")
	r.write(t)
}

// upstreamScheduler is the scheduler name that upstream's program uses.
const upstreamScheduler = "upstream"

const upstreamConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, contentType: application/vnd.kubernetes.protobuf, qps: 5000, burst: 5000}
profiles: [{schedulerName: %s}]
`

// startUpstreamScheduler builds upstream's kube-scheduler and runs it on the cluster's machine
// until the end of the test.
func startUpstreamScheduler(t *testing.T, c *kit.Cluster) {
	t.Helper()
	dir := t.TempDir()
	program, file := filepath.Join(dir, "kube-scheduler"), filepath.Join(dir, "scheduler.yaml")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "k8s.io/kubernetes/cmd/kube-scheduler")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build scheduler: %v\n%s", err, output)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, upstreamConfiguration, c.Path("admin.kubeconfig"), upstreamScheduler), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--config", file, "--secure-port=0", "--v=0")
	if err := c.Do(command.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// schedule creates pods for a scheduler. It returns the time from the first request until the last
// pod is assigned to a node. It deletes the pods before it returns.
func schedule(t *testing.T, client kubernetes.Interface, scheduler string) time.Duration {
	t.Helper()
	pods := client.CoreV1().Pods(loadNamespace)
	numbers, start := make(chan int), time.Now()
	var creating sync.WaitGroup
	for range schedulingCreators {
		creating.Go(func() {
			for number := range numbers {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", number), Labels: map[string]string{"app": "app"}}, Spec: corev1.PodSpec{
					SchedulerName: scheduler, NodeSelector: map[string]string{"hollow": "true"}, Containers: []corev1.Container{{Name: "app", Image: kit.ToolsImage}},
				}}
				if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	creating.Go(func() {
		for number := range schedulingPods {
			numbers <- number
		}
		close(numbers)
	})
	placed := map[string]bool{}
	for len(placed) < schedulingPods && !t.Failed() {
		follow(t, client, placed) // repeat, because the API server can end a busy client's watch
	}
	duration := time.Since(start)
	creating.Wait()
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	return duration
}

// follow adds the names of assigned pods to placed. It returns when all pods are assigned to nodes,
// or when the watch ends.
func follow(t *testing.T, client kubernetes.Interface, placed map[string]bool) {
	t.Helper()
	changes, err := client.CoreV1().Pods(loadNamespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			placed[pod.Name] = true
		}
		if len(placed) == schedulingPods || t.Failed() {
			return
		}
	}
}
