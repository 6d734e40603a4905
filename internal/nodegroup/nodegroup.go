// Package nodegroup defines how a node group's configuration is stored: as a ConfigMap in the
// openshift-node project, and as annotations and a condition on the group's nodes.
//
//	ConfigMap             control plane            node
//	node-config-compute → desired configuration → node-config.yaml
//	                      of one node at a time
//	                      condition             ← hash of the applied configuration, or
//	                                              the reason why the node rejected it
//
// HashAnnotation and the names of the project, the ConfigMaps and their key are the same as in
// OpenShift 3.
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
	// Namespace is the project that contains the ConfigMaps.
	Namespace = "openshift-node"
	// Key is the ConfigMap key that contains the NodeConfig.
	Key = "node-config.yaml"
	// Prefix is the prefix of each ConfigMap's name.
	Prefix = "node-config-"
)

// Node annotations. Only the control plane writes the first three.
const (
	// GroupAnnotation contains the name of the ConfigMap for the node's group.
	GroupAnnotation = "slipway.openshift.io/node-group"
	// DesiredAnnotation contains the configuration that the node must apply. See Desired.
	DesiredAnnotation = "slipway.openshift.io/desired-node-config"
	// LabelsAnnotation contains the keys of the labels that come from the group, sorted and
	// separated by commas.
	LabelsAnnotation = "slipway.openshift.io/node-group-labels"
	// HashAnnotation contains the hash of the configuration that is in effect.
	HashAnnotation = "node.openshift.io/md5sum"
	// RefusedAnnotation contains the hash of a configuration that the node has reverted or never
	// used.
	RefusedAnnotation = "slipway.openshift.io/refused-node-config"
)

// ConditionType is the type of the Node condition that is True if the node rejected the desired
// configuration. The condition's message contains the reason.
const ConditionType corev1.NodeConditionType = "NodeConfigRefused"

// ConfigMapOf returns the name of a group's ConfigMap. infra and node-config-infra are the same
// group. ConfigMapOf returns "" if group is empty.
func ConfigMapOf(group string) string {
	if group == "" || strings.HasPrefix(group, Prefix) {
		return group
	}
	return Prefix + group
}

// Hash returns the hash of a ConfigMap's content. As in OpenShift 3, it is the MD5 sum. The hash
// only distinguishes versions and provides no security.
func Hash(content string) string {
	sum := md5.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// Desired returns the DesiredAnnotation value for a ConfigMap with the given content.
func Desired(configMap, content string) string { return configMap + "/" + Hash(content) }

// ParseDesired returns the ConfigMap and the hash in a DesiredAnnotation value.
func ParseDesired(value string) (configMap, hash string, ok bool) {
	configMap, hash, ok = strings.Cut(value, "/")
	return configMap, hash, ok && strings.HasPrefix(configMap, Prefix) && hash != ""
}

// Labels returns a group's labels, which are in kubeletArguments.node-labels.
func Labels(content string) (map[string]string, error) {
	var config struct {
		KubeletArguments map[string][]string `json:"kubeletArguments"`
	}
	if err := yaml.Unmarshal([]byte(content), &config); err != nil {
		return nil, fmt.Errorf("parse node group labels: %w", err)
	}
	return ParseLabels(config.KubeletArguments["node-labels"])
}

// ParseLabels parses the values of the kubelet's node-labels argument, such as a=b,c=d.
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

// Keys returns the LabelsAnnotation value for the given labels.
func Keys(labels map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(labels)), ",")
}
