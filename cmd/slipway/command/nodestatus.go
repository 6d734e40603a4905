package command

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/platform/host"
)

// nodeStatus is a node's status, as reported in its Node object.
type nodeStatus struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"`
	Address string `json:"address,omitempty"`
	Pods    int    `json:"pods"`
	// Refuses lists the reasons why no more pods are scheduled to the node, each with its remedy.
	Refuses []string `json:"refuses,omitempty"`
}

// apiTimeout is the timeout for requests from `slipway status` to the API server.
const apiTimeout = 3 * time.Second

// clusterStatus returns the status of the nodes. It returns nil if the API server does not respond,
// because the status of the components shows why.
func clusterStatus(ctx context.Context, h *host.Host) []nodeStatus {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	config, err := h.StatusClient()
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	if h.Joined() { // a node's credentials give access only to this node
		return nodes(ctx, client, "metadata.name="+h.Node.NodeName, "spec.nodeName="+h.Node.NodeName)
	}
	return nodes(ctx, client, "", "")
}

// nodes returns the status of the nodes that match selector, and counts their pods that match
// podSelector. Both parameters are field selectors.
func nodes(ctx context.Context, client kubernetes.Interface, selector, podSelector string) []nodeStatus {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil
	}
	podCount := map[string]int{}
	if pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: podSelector}); err == nil {
		for _, pod := range pods.Items {
			podCount[pod.Spec.NodeName]++
		}
	}
	var nodes []nodeStatus
	for _, node := range list.Items {
		status := nodeStatus{Name: node.Name, Pods: podCount[node.Name], Refuses: refusals(node)}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				status.Ready, status.Message = condition.Status == corev1.ConditionTrue, condition.Message
			}
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && status.Address == "" {
				status.Address = address.Address
			}
		}
		nodes = append(nodes, status)
	}
	return nodes
}

// refusals returns the reasons why the scheduler does not place pods on a node.
func refusals(node corev1.Node) []string {
	remedies := map[corev1.NodeConditionType]string{
		corev1.NodeDiskPressure: "its disk is nearly full; free some space, or lower eviction-hard (imagefs.available, nodefs.available) " +
			"in kubeletArguments of node-config.yaml",
		corev1.NodeMemoryPressure: "its memory is nearly exhausted; `oc describe node` lists the requests of its pods",
		corev1.NodePIDPressure:    "its process IDs are nearly exhausted; delete pods with many processes, or raise kernel.pid_max and kernel.threads-max",
	}
	var reasons []string
	for _, condition := range node.Status.Conditions {
		if remedy := remedies[condition.Type]; remedy != "" && condition.Status == corev1.ConditionTrue {
			reasons = append(reasons, remedy)
		}
	}
	if node.Spec.Unschedulable {
		reasons = append(reasons, "it is unschedulable; to make it schedulable, run: oc adm uncordon "+node.Name)
	}
	return reasons
}
