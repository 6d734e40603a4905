// Package hosts tests clusters with several hosts: how a host joins and leaves, and the features
// that work across hosts.
package hosts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.MainWith(m, kit.Options{Segment: true, Master: podNetworks}) }

// second is the name of the second host's node.
const second = "second"

// waitNodeReady waits until a node is ready.
func waitNodeReady(c *kit.Cluster, name string) {
	c.WaitFor("ready node "+name, func(ctx context.Context) error {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", name)
	})
}

func TestHostJoinsAsNode(t *testing.T) {
	c, host := kit.SharedHost(t)
	waitNodeReady(c, second)
	nodes := c.OC("get", "nodes", c.NodeName(), second)
	if strings.Count(nodes, " Ready ") != 2 {
		t.Errorf("oc get nodes:\n%s", nodes)
	}
	ready := map[string]bool{}
	for _, node := range c.Status().Nodes {
		ready[node.Name] = node.Ready
	}
	if !ready[c.NodeName()] || !ready[second] {
		t.Errorf("status of the master: %v", ready)
	}
	status := host.Status()
	if len(status.Nodes) != 1 || status.Nodes[0].Name != second || status.Nodes[0].Address != host.Address.String() {
		t.Errorf("status of the host: %+v", status.Nodes)
	}
	var processes []string
	for _, process := range status.Processes {
		processes = append(processes, process.Name)
	}
	if got := strings.Join(processes, " "); got != "containerd node" {
		t.Errorf("the host runs %s", got)
	}
}
