// Package nodegroup defines how the configuration of a node group is stored: as a ConfigMap of the
// project openshift-node, and as annotations and a condition of the nodes of the group.
//
//	ConfigMap            control plane            node
//	node-config-compute → desired configuration → node-config.yaml
//	                      of one node at a time   hash, or the reason of a rejection
//
// The names of the project, the ConfigMaps, their key and HashAnnotation are those of OpenShift 3.
package nodegroup

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const (
	// Namespace is the project of the ConfigMaps.
	Namespace = "openshift-node"
	// Key is the key of a ConfigMap that contains the NodeConfig.
	Key = "node-config.yaml"
	// Prefix begins the name of each ConfigMap.
	Prefix = "node-config-"
)

// Annotations of a Node. Only the control plane writes the first three.
const (
	// GroupAnnotation is the name of the ConfigMap of the node's group.
	GroupAnnotation = "slipway.openshift.io/node-group"
	// DesiredAnnotation is the configuration that the node must get; see Desired.
	DesiredAnnotation = "slipway.openshift.io/desired-node-config"
	// LabelsAnnotation contains the keys of the labels that come from the group, sorted and separated
	// by commas.
	LabelsAnnotation = "slipway.openshift.io/node-group-labels"
	// HashAnnotation is the hash of the configuration that is in effect.
	HashAnnotation = "node.openshift.io/md5sum"
	// RefusedAnnotation is the hash of a configuration that the node has reverted or never used.
	RefusedAnnotation = "slipway.openshift.io/refused-node-config"
)

// ConditionType is the type of the condition of a Node that is True if the node rejected the
// desired configuration. Its message contains the reason.
const ConditionType corev1.NodeConditionType = "NodeConfigRefused"

// ConfigMapOf returns the name of the ConfigMap of a group: infra and node-config-infra are the
// same group. It returns "" for no group.
func ConfigMapOf(group string) string {
	if group == "" || strings.HasPrefix(group, Prefix) {
		return group
	}
	return Prefix + group
}

// Hash returns the hash of the content of a ConfigMap. As in OpenShift 3, it is the MD5 sum. It
// distinguishes versions and protects nothing.
func Hash(content string) string {
	sum := md5.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// Desired returns the value of DesiredAnnotation for a ConfigMap with a content.
func Desired(configMap, content string) string { return configMap + "/" + Hash(content) }

// ParseDesired returns the ConfigMap and the hash of a value of DesiredAnnotation.
func ParseDesired(value string) (configMap, hash string, ok bool) {
	configMap, hash, ok = strings.Cut(value, "/")
	return configMap, hash, ok && strings.HasPrefix(configMap, Prefix) && hash != ""
}

// Labels returns the labels of a group, which are in kubeletArguments.node-labels.
func Labels(content string) (map[string]string, error) {
	var config struct {
		KubeletArguments map[string][]string `json:"kubeletArguments"`
	}
	if err := yaml.Unmarshal([]byte(content), &config); err != nil {
		return nil, fmt.Errorf("read labels of node group: %w", err)
	}
	return ParseLabels(config.KubeletArguments["node-labels"])
}

// ParseLabels reads the values of the argument node-labels of the kubelet, such as a=b,c=d.
func ParseLabels(values []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range strings.Split(strings.Join(values, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, value, _ := strings.Cut(text, "=")
		if messages := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(messages) > 0 {
			return nil, fmt.Errorf("kubeletArguments.node-labels: %q is not a label: %s", text, messages[0])
		}
		labels[key] = value
	}
	return labels, nil
}

// Keys returns the value of LabelsAnnotation for labels.
func Keys(labels map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(labels)), ",")
}
