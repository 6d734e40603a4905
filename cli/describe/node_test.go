package describe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestNodesHaveFormerFields(t *testing.T) {
	const start = "Name:               n1\nSystem Info:\n  Machine ID:               1\n  Container Runtime Version:  containerd://2\n  Kubelet Version:            v1.37.2\n"
	const podCIDR = "PodCIDR:                      10.128.0.0/23\n"
	const pods = "Non-terminated Pods:          (1 in total)\n  Namespace\n"
	for name, tt := range map[string]struct{ object, text, want string }{
		"of Kubernetes": {
			"{metadata: {name: n1}, status: {nodeInfo: {kubeletVersion: v1.37.2}}}", start + podCIDR + pods,
			start + "  Kube-Proxy Version:         v1.37.2\n" + podCIDR + "ExternalID:                   n1\n" + pods,
		},
		"with fields of 3.11": {
			"{metadata: {name: n1}, spec: {externalID: n1.example.com}, status: {nodeInfo: {kubeletVersion: v1.37.2, kubeProxyVersion: v1.11.0}}}", start + "Pods: not authorized\n",
			start + "  Kube-Proxy Version:         v1.11.0\nExternalID:                   n1.example.com\nPods: not authorized\n",
		},
		"without versions": {"{metadata: {name: n1}}", "Name: n1\n" + pods, "Name: n1\n" + pods},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tt.object), &object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, withFormerFields(tt.text, object)); diff != "" {
				t.Errorf("description (-want +got):\n%s", diff)
			}
		})
	}
}
