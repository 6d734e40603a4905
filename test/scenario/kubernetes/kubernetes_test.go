// Package kubernetes tests the Kubernetes features on which OpenShift 3 administrators rely:
// placement, priority, quota, roles, workloads, services and volumes.
//
// The cluster in these tests has one machine. Tests that need several nodes add Node objects
// without a machine. The scheduler and the controllers treat these nodes like any other node, but
// the pods that are placed on them never run.
package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// master allows services to use external addresses from a network that no machine uses, and allows
// projects to add tolerations to their pods. It also makes the master's DNS server accept all
// clients, as OpenShift 3.11's installer does. The descheduler's policy file exists only during the
// descheduler's test.
const master = `
slipway: {descheduler: {policyConfigFile: descheduler.yaml, interval: 1s}}
kubernetesMasterConfig:
  schedulerConfigFile: scheduler.json
  apiServerArguments: {feature-gates: ["BlockVolume=true,APIResponseCompression=false"]}
  controllerArguments: {feature-gates: ["BlockVolume=true"]}
networkConfig: {externalIPNetworkCIDRs: [198.18.255.0/24]}
dnsConfig: {bindAddress: "0.0.0.0:8053", bindNetwork: tcp4}
admissionConfig: {pluginConfig: {PodTolerationRestriction: {configuration: {apiVersion: v1, kind: DefaultAdmissionConfig, disable: false}}}}
`

// node configures static pods, the feature gates in OpenShift 3.11's sample, unsafe sysctls, and
// limits that differ from the defaults.
const node = `
kubeletArguments:
  feature-gates: ["RotateKubeletClientCertificate=true,RotateKubeletServerCertificate=false"]
  allowed-unsafe-sysctls: ["kernel.msg*,net.core.somaxconn"]
podManifestConfig: {path: pods, fileCheckIntervalSeconds: 1}
authConfig: {authenticationCacheTTL: 4m, authenticationCacheSize: 1000, authorizationCacheTTL: 3m, authorizationCacheSize: 1000}
masterClientConnectionOverrides: {contentType: application/json, qps: 60, burst: 120}
`

func TestMain(m *testing.M) { kit.MainWithDevicePlugins(m, kit.Options{Master: master, Node: node}) }

// sleeper returns a container that runs until it is terminated. fields contains additional fields,
// such as `ports: [...]`.
func sleeper(fields ...string) string {
	return container("sleep infinity", fields...)
}

// container returns a container that runs a shell command.
func container(command string, fields ...string) string {
	all := append([]string{"name: main", "image: " + kit.ToolsImage, fmt.Sprintf("command: [sh, -c, %q]", command)}, fields...)
	return "containers: [{" + strings.Join(all, ", ") + "}]"
}

// pod returns a manifest for a pod whose app label is its name. fields contains fields for the
// pod's spec, one field per line.
func pod(name string, fields ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %[1]s}}
spec:
  terminationGracePeriodSeconds: 1
  %s
`, name, strings.Join(fields, "\n  "))
}

// create creates the object in a manifest with `oc create -f`. The error contains the API server's
// message.
func create(t *testing.T, c *kit.Cluster, manifest string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := c.TryOC("create", "-f", file)
	return err
}

// expectRejected fails the test unless the API server rejects a manifest with an error that
// contains all of the given texts.
func expectRejected(t *testing.T, c *kit.Cluster, manifest string, texts ...string) {
	t.Helper()
	err := create(t, c, manifest)
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want an error with %q, for:\n%s", err, text, manifest)
		}
	}
}

// makePod creates a pod from a manifest.
func makePod(t *testing.T, c *kit.Cluster, manifest string) {
	t.Helper()
	var object corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest), &object); err != nil {
		t.Fatalf("read manifest: %v\n%s", err, manifest)
	}
	if _, err := c.Client.CoreV1().Pods(c.Namespace).Create(t.Context(), &object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// addNode adds a node without a machine, and removes it when the test ends. The node is ready, and
// has four CPUs and 8 GiB of memory for pods. After about 40 seconds without a heartbeat, the node
// controller marks it as not ready.
func addNode(t *testing.T, c *kit.Cluster, name string, labels map[string]string) {
	t.Helper()
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelHostname] = name
	nodes := c.Client.CoreV1().Nodes()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := nodes.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	const size = `{"cpu":"4","memory":"8Gi","pods":"20"}`
	c.OC("patch", "node", name, "--subresource", "status", "-p", `{"status":{"capacity":`+size+`,"allocatable":`+size+`}}`)
	setCondition(t, c, name, corev1.NodeReady, corev1.ConditionTrue)
	waitTaints(c, name)
}

// setCondition sets a condition on a node without a machine.
func setCondition(t *testing.T, c *kit.Cluster, name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"lastHeartbeatTime":%q}]}}`,
		kind, status, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	c.OC("patch", "node", name, "--subresource", "status", "--type", "strategic", "-p", patch)
}

// waitTaints waits until a node has exactly the given taints, in the form key=value:effect or
// key:effect.
func waitTaints(c *kit.Cluster, name string, want ...string) {
	c.WaitFor(fmt.Sprintf("taints %v of node %s", want, name), func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var taints []string
		for _, taint := range node.Spec.Taints {
			taints = append(taints, taint.ToString())
		}
		slices.Sort(taints)
		slices.Sort(want)
		if !slices.Equal(taints, want) {
			return fmt.Errorf("it has %v", taints)
		}
		return nil
	})
}

// placement waits until the scheduler has made a decision about a pod. It returns the name of the
// pod's node, or "" if no node is suitable.
func placement(c *kit.Cluster, name string) (node string) {
	c.WaitFor("decision on pod "+name, func(context.Context) error {
		pod := c.Pod(name)
		if node = pod.Spec.NodeName; node != "" {
			return nil
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return nil
			}
		}
		return fmt.Errorf("the scheduler has not decided")
	})
	return node
}

// wantPlace fails the test unless a pod is placed on the given node. An empty name means that no
// node is suitable.
func wantPlace(t *testing.T, c *kit.Cluster, name, node string) {
	t.Helper()
	if got := placement(c, name); got != node {
		t.Errorf("pod %s is placed on node %q, want %q", name, got, node)
	}
}

// waitPlace waits until a pod is placed on a node.
func waitPlace(c *kit.Cluster, name, node string) {
	c.WaitFor(fmt.Sprintf("pod %s on node %s", name, node), func(context.Context) error {
		if got := c.Pod(name).Spec.NodeName; got != node {
			return fmt.Errorf("the pod is on %q", got)
		}
		return nil
	})
}

// waitLeaving waits until a pod is being deleted or has been deleted.
func waitLeaving(c *kit.Cluster, name string) {
	c.WaitFor("end of pod "+name, func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp == nil {
			err = fmt.Errorf("it still exists")
		}
		return err
	})
}

// waitPhase waits until a pod is in the given phase, and returns the pod.
func waitPhase(c *kit.Cluster, name string, phase corev1.PodPhase) *corev1.Pod {
	var pod *corev1.Pod
	c.WaitFor(fmt.Sprintf("phase %s of pod %s", phase, name), func(context.Context) error {
		if pod = c.Pod(name); pod.Status.Phase != phase {
			return fmt.Errorf("it is %s: %s", pod.Status.Phase, pod.Status.Reason)
		}
		return nil
	})
	return pod
}

// expect fails the test for each text that output does not contain.
func expect(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("no %q in:\n%s", text, output)
		}
	}
}

// waitEvent waits for an event about an object, with the given reason and a message that contains
// the given text.
func waitEvent(c *kit.Cluster, namespace, object, reason, text string) *corev1.Event {
	var existing *corev1.Event
	c.WaitFor(fmt.Sprintf("event %s of %s with %q", reason, object, text), func(ctx context.Context) error {
		events, err := c.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
		if err != nil {
			return err
		}
		var values []string
		for _, event := range events.Items {
			if event.Reason == reason && strings.Contains(event.Message, text) {
				existing = &event
				return nil
			}
			values = append(values, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("there are %q", values)
	})
	return existing
}
