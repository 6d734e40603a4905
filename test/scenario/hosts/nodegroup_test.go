package hosts

import (
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// grouped is a cluster with a host in the node-config-compute node group.
type grouped struct {
	*kit.Cluster
	t    *testing.T
	host *kit.Host
	name string
}

// edit runs `oc edit` on the group's ConfigMap with an editor that replaces kubeletArguments.
func (g grouped) edit(arguments string) {
	g.t.Helper()
	editor := filepath.Join(g.t.TempDir(), "editor")
	script := fmt.Sprintf("#!/bin/sh\nset -e\nsed -i '/^    kubeletArguments:/,/^kind:/{/^kind:/!d}' \"$1\"\n"+
		"sed -i 's|^kind: ConfigMap|    kubeletArguments: %s\\n&|' \"$1\"\n", arguments)
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		g.t.Fatal(err)
	}
	g.t.Setenv("EDITOR", editor)
	if output := g.OC("edit", "cm", "node-config-compute", "-n", "openshift-node"); !strings.Contains(output, "configmap/node-config-compute edited") {
		g.t.Fatalf("oc edit printed %q", output)
	}
}

// waitState waits until the node's condition has the given reason for the current version of the
// ConfigMap.
func (g grouped) waitState(reason string) *corev1.Node {
	g.t.Helper()
	configMap, err := g.Client.CoreV1().ConfigMaps("openshift-node").Get(g.t.Context(), "node-config-compute", metav1.GetOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	hash := fmt.Sprintf("%x", md5.Sum([]byte(configMap.Data["node-config.yaml"])))
	key := "node.openshift.io/md5sum"
	if reason != "NodeConfigApplied" {
		key = "slipway.openshift.io/refused-node-config"
	}
	var node *corev1.Node
	g.WaitFor("state "+reason+" of the node", func(ctx context.Context) (err error) {
		if node, err = g.Client.CoreV1().Nodes().Get(ctx, g.name, metav1.GetOptions{}); err != nil {
			return err
		}
		condition := corev1.NodeCondition{}
		for _, c := range node.Status.Conditions {
			if c.Type == "NodeConfigRefused" {
				condition = c
			}
		}
		if node.Annotations[key] != hash || condition.Reason != reason {
			return fmt.Errorf("annotations are %v, the condition is %s: %s", node.Annotations, condition.Reason, condition.Message)
		}
		return nil
	})
	return node
}

// waitPods waits until the node's pod capacity equals count.
func (g grouped) waitPods(count string) {
	g.t.Helper()
	g.WaitFor("room for "+count+" pods", func(ctx context.Context) error {
		node, err := g.Client.CoreV1().Nodes().Get(ctx, g.name, metav1.GetOptions{})
		if err == nil && node.Status.Capacity.Pods().String() != count {
			err = fmt.Errorf("the node has a capacity of %s pods", node.Status.Capacity.Pods())
		}
		return err
	})
}

func (g grouped) file() string {
	g.t.Helper()
	content, err := os.ReadFile(g.host.NodeFile())
	if err != nil {
		g.t.Fatal(err)
	}
	return string(content)
}

// TestNodeFollowsItsGroup follows 3.11 Cluster Administration, 2.11. Changes to the group must
// restart the node process, but no pod. At the end, the test deletes the node, and the host leaves.
func TestNodeFollowsItsGroup(t *testing.T) {
	c, _ := kit.SharedHost(t)
	g := grouped{c, t, c.NewHost("grouped", kit.Options{}), "grouped"}
	original := c.OC("get", "cm", "node-config-compute", "-n", "openshift-node", "-o", `jsonpath={.data.node-config\.yaml}`)
	for _, name := range []string{"all-in-one", "compute", "infra", "master", "master-infra"} {
		if list := c.OC("get", "cm", "-n", "openshift-node"); !strings.Contains(list, "node-config-"+name+" ") {
			t.Errorf("the group %s is missing:\n%s", name, list)
		}
	}
	if result := c.Slipway("token", "create", "--group", "none"); result.Code == 0 || !strings.Contains(result.Stderr, "has no ConfigMap node-config-none; use one of node-config-all-in-one, node-config-compute") {
		t.Errorf("a token for a group that does not exist: %d %s", result.Code, result.Stderr)
	}
	g.host.JoinWith(c.APIURL(), strings.TrimSpace(c.MustSlipway("token", "create", "--group", "compute")))
	waitNodeReady(c, g.name)
	g.waitState("NodeConfigApplied")
	if list := c.OC("get", "node", g.name); !strings.Contains(list, " compute ") {
		t.Errorf("the node does not have the role of its group:\n%s", list)
	}

	c.Apply(server("lasting", g.name))
	before := c.WaitPodRunning("lasting").Status.ContainerStatuses[0]
	g.edit(`{node-labels: [node-role.kubernetes.io/compute=true,disk=ssd], max-pods: ["40"], image-gc-high-threshold: ["92"]}`)
	node := g.waitState("NodeConfigApplied")
	g.waitPods("40")
	if node.Labels["disk"] != "ssd" || !strings.Contains(g.file(), "image-gc-high-threshold") {
		t.Errorf("labels are %v, node-config.yaml is\n%s", node.Labels, g.file())
	}

	g.edit(`{cert-dir: [/tmp/certificates]}`)
	g.waitState("NodeConfigRefused")
	written := g.file()
	g.edit(`{system-reserved: ["memory=100Ti"]}`) // the kubelet exits with this setting
	g.waitState("NodeConfigReverted")
	if file := g.file(); file != written {
		t.Errorf("node-config.yaml is\n%s\nwant\n%s", file, written)
	}
	waitNodeReady(c, g.name)
	description := c.OC("describe", "node", g.name)
	for _, text := range []string{"NodeConfigRefused ", "NodeConfigReverted", "kubeletArguments.cert-dir: can only be set in node-config.yaml on the host itself", "exited 3 times before it was ready"} {
		if !strings.Contains(description, text) {
			t.Errorf("the description of the node does not contain %q:\n%s", text, description)
		}
	}

	c.OC("create", "clusterrolebinding", "grouped-editor", "--clusterrole=edit", "--user=eve")
	t.Cleanup(func() { c.OC("delete", "clusterrolebinding", "grouped-editor") })
	configMap := kit.CorePath("openshift-node", "configmaps/node-config-compute")
	c.User("eve").MayNot("PATCH", configMap, `{"data":{"node-config.yaml":"apiVersion: v1\nkind: NodeConfig\n"}}`, "may update nodes")
	c.Administrator().MayNot("PATCH", configMap, `{"data":{"node-config.yaml":"apiVersion: v1\nkind: NodeConfig\nx: 1\n"}}`, "x: unknown key")

	c.OC("patch", "cm", "node-config-compute", "-n", "openshift-node", "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":"/data/node-config.yaml","value":%q}]`, original))
	node = g.waitState("NodeConfigApplied")
	g.waitPods("250")
	if _, exists := node.Labels["disk"]; exists {
		t.Errorf("the node keeps the label of its group: %v", node.Labels)
	}
	after := c.WaitPodRunning("lasting").Status.ContainerStatuses[0]
	if after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Errorf("the container is %s after %d restarts, want %s", after.ContainerID, after.RestartCount, before.ContainerID)
	}

	// A running host whose node was deleted must be able to leave, although the masters reject its
	// certificates.
	c.OC("delete", "node", g.name)
	g.host.MustSlipway("leave")
	if nodes, err := c.TryOC("get", "node", g.name); err == nil {
		t.Errorf("after the host has left, it has a node:\n%s", nodes)
	}
}
