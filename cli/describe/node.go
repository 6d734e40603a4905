package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	kubectldescribe "k8s.io/kubectl/pkg/describe"
)

// node extends kubectl's description of a node with the fields that OpenShift 3.11's client printed
// and that kubectl has dropped.
type node struct {
	kubectldescribe.ResourceDescriber
	client dynamic.ResourceInterface
}

// Describe returns kubectl's description of a node, with the fields that kubectl has dropped.
func (n node) Describe(namespace, name string, settings kubectldescribe.DescriberSettings) (string, error) {
	text, err := n.ResourceDescriber.Describe(namespace, name, settings)
	if err != nil {
		return "", err
	}
	ctx := context.Background() // kubectl does not pass a context
	object, err := n.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return withFormerFields(text, object.Object), nil
}

// withFormerFields inserts the service proxy's version after the kubelet's version, and the
// external ID before the pods. The service proxy runs in the same program as the kubelet, so it has
// the kubelet's version unless the node reports a different version. The external ID defaults to
// the node's name.
func withFormerFields(text string, object map[string]any) string {
	value := func(fields ...string) string {
		text, _, _ := unstructured.NestedString(object, fields...)
		return text
	}
	kubelet := value("status", "nodeInfo", "kubeletVersion")
	version := cmp.Or(value("status", "nodeInfo", "kubeProxyVersion"), kubelet)
	externalID := cmp.Or(value("spec", "externalID"), value("metadata", "name"))
	lines := strings.SplitAfter(text, "\n")
	index := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  Kubelet Version:") })
	if index < 0 {
		return text
	}
	column := strings.Index(lines[index], kubelet)
	field := func(name, value string) string { return fmt.Sprintf("%-*s%s\n", column, name, value) }
	lines = slices.Insert(lines, index+1, field("  Kube-Proxy Version:", version))
	for end := index + 2; end < len(lines); end++ {
		if strings.HasPrefix(lines[end], "Non-terminated Pods:") || strings.HasPrefix(lines[end], "Pods:") {
			return strings.Join(slices.Insert(lines, end, field("ExternalID:", externalID)), "")
		}
	}
	return strings.Join(lines, "")
}
