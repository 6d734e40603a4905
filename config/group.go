package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// GroupFile is a node-config.yaml that contains a node group's configuration.
type GroupFile struct {
	// Content is the content of the new node-config.yaml.
	Content []byte
	// Applied is the part of the group's configuration that Content contains, in JSON. It must be
	// passed to the next call to MergeGroup.
	Applied []byte
	// Changed lists the NodeConfig keys that change, except the node's labels, which the control
	// plane sets.
	Changed []string
	// Next is the host's configuration with the new node-config.yaml.
	Next *Config
}

// groupHead is the header of a node-config.yaml with a group's configuration.
const groupHead = `# The ConfigMap of the node's group in the project openshift-node sets some of these keys.
# Change them there. Changes of other keys in this file take effect at the next start.
`

// MergeGroup merges a node group's configuration into the host's node-config.yaml. It removes the
// keys that the previous version of the group's configuration added and that the new version omits.
// applied is GroupFile.Applied from the merge of the previous version, or nil.
//
// A group can set only the keys in groupKeys. Any other key must have the host's value or, if its
// value is specific to each host, OpenShift 3's default. Without these restrictions, a user who can
// write the ConfigMap could take over the host. NodeConfig also contains the paths of key files,
// programs and pod manifests.
func (c *Config) MergeGroup(applied, group []byte) (*GroupFile, error) {
	if _, err := DecodeGroup(group); err != nil {
		return nil, err
	}
	path := NodeFile(c.DataDir)
	if c.node.file != path {
		return nil, fmt.Errorf("the NodeConfig of this host is in %s; move it to %s, so that its node group can change it", c.node.file, path)
	}
	current, err := readJSON(path)
	if err != nil {
		return nil, err
	}
	settings, err := groupSettings(group, current)
	if err != nil {
		return nil, err
	}
	content, err := mergeFile(current, applied, settings)
	if err != nil {
		return nil, err
	}
	file := &GroupFile{Content: content, Applied: settings}
	if file.Next, err = c.loadNode(content); err != nil {
		return nil, err
	}
	keys, err := Changes(c, file.Next)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if key != nodeKind+": kubeletArguments.node-labels" {
			file.Changed = append(file.Changed, key)
		}
	}
	return file, nil
}

// DecodeGroup decodes a node group's configuration. It reports only problems that do not depend on
// the host.
func DecodeGroup(content []byte) (*NodeConfig, error) {
	roots, err := parse(content)
	if err != nil {
		return nil, Problems{syntaxProblem(nodegroup.Key, err)}
	}
	if len(roots) != 1 {
		return nil, fmt.Errorf("%s must contain one document: a NodeConfig", nodegroup.Key)
	}
	if _, problem := kindOf(nodegroup.Key, roots[0], []string{nodeKind}); problem != nil {
		return nil, Problems{*problem}
	}
	config := &NodeConfig{}
	if _, problems := decode(nodegroup.Key, roots[0], config, nil); len(problems) > 0 {
		return nil, problems.sorted()
	}
	_, err = nodegroup.ParseLabels(config.KubeletArguments["node-labels"])
	return config, err
}

// mergeFile returns the YAML of a configuration in which a group's settings replace the settings of
// the group's previous version.
func mergeFile(current map[string]any, applied, settings []byte) ([]byte, error) {
	before, err := json.Marshal(current)
	if err != nil {
		return nil, fmt.Errorf("merge node group configuration: %w", err)
	}
	if applied == nil {
		applied = []byte("{}")
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(applied, settings, before)
	if err != nil {
		return nil, fmt.Errorf("merge node group configuration: %w", err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, fmt.Errorf("merge node group configuration: %w", err)
	}
	text, err := yaml.JSONToYAML(after)
	if err != nil {
		return nil, fmt.Errorf("merge node group configuration: %w", err)
	}
	return append([]byte(groupHead), text...), nil
}

// loadNode returns the host's configuration with a different node-config.yaml.
func (c *Config) loadNode(content []byte) (*Config, error) {
	// The file must be in the same directory as node-config.yaml, because its paths are relative to
	// that directory.
	candidate := filepath.Join(filepath.Dir(NodeFile(c.DataDir)), ".node-config.yaml")
	if err := writeFile(candidate, content); err != nil {
		return nil, fmt.Errorf("check node group configuration: %w", err)
	}
	defer os.Remove(candidate)
	next, err := Load(c.DataDir, candidate)
	if problems, ok := errors.AsType[Problems](err); ok {
		for i := range problems {
			problems[i].Line = 0 // the line number refers to the temporary file
			if problems[i].File == candidate {
				problems[i].File = nodegroup.Key
			}
		}
		return nil, problems
	}
	return next, err
}

func readJSON(path string) (map[string]any, error) {
	values := map[string]any{"apiVersion": "v1", "kind": nodeKind}
	content, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(content, &values)
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read node configuration %q: %w", path, err)
	}
	return values, nil
}

// groupSettings returns the changes that a group makes to a host's NodeConfig, in JSON.
func groupSettings(group []byte, current map[string]any) ([]byte, error) {
	var values map[string]any
	if err := yaml.Unmarshal(group, &values); err != nil {
		return nil, fmt.Errorf("read node group configuration: %w", err)
	}
	filter := &groupFilter{}
	settings := filter.values("", values, current)
	if len(filter.problems) > 0 {
		return nil, filter.problems.sorted()
	}
	return json.Marshal(settings)
}

// manifestPath is the argument that sets the static pod directory. A group can set only OpenShift
// 3's directory, to which only root has access, because static pods can control the whole host.
const (
	manifestPath      = "kubeletArguments.pod-manifest-path"
	manifestDirectory = "/etc/origin/node/pods"
)

// groupFilter selects the settings that a group is allowed to change.
type groupFilter struct{ problems Problems }

func (f *groupFilter) values(path string, values, current map[string]any) map[string]any {
	settings := map[string]any{}
	for name, value := range values {
		key := name
		if path != "" {
			key = path + "." + name
		}
		nested, isMap := value.(map[string]any)
		switch {
		case value == nil:
		case slices.Contains(groupKeys(), key) || key == manifestPath && reflect.DeepEqual(value, []any{manifestDirectory}):
			settings[name] = value
		case isMap:
			below, _ := current[name].(map[string]any)
			if nested := f.values(key, nested, below); len(nested) > 0 {
				settings[name] = nested
			}
		case reflect.DeepEqual(value, current[name]) || isDefault(key, value):
		default:
			f.problems = append(f.problems, Problem{
				File: nodegroup.Key, Key: key, Text: "can only be set in node-config.yaml on the host itself; remove it from the ConfigMap",
			})
		}
	}
	return settings
}

// isDefault reports whether a value is a key's default in OpenShift 3.11's node groups. It returns
// false for a key that hosts do not set individually.
func isDefault(key string, value any) bool {
	if list, ok := value.([]any); ok && len(list) == 1 {
		value = list[0]
	}
	text := fmt.Sprint(value)
	if key == "networkConfig.networkPluginName" {
		return strings.HasPrefix(text, "redhat/openshift-ovs-")
	}
	want, ok := map[string]string{
		"dnsBindAddress":                                   "127.0.0.1:53",
		"dnsDomain":                                        "cluster.local",
		"dnsIP":                                            "0.0.0.0",
		"dnsRecursiveResolvConf":                           "/etc/origin/node/resolv.conf",
		"masterKubeConfig":                                 "node.kubeconfig",
		"servingInfo.bindAddress":                          "0.0.0.0:10250",
		"servingInfo.bindNetwork":                          "tcp4",
		"servingInfo.clientCA":                             "client-ca.crt",
		"volumeDirectory":                                  "/var/lib/origin/openshift.local.volumes",
		"kubeletArguments.bootstrap-kubeconfig":            "/etc/origin/node/bootstrap.kubeconfig",
		"kubeletArguments.cert-dir":                        "/etc/origin/node/certificates",
		"kubeletArguments.feature-gates":                   "RotateKubeletClientCertificate=true,RotateKubeletServerCertificate=true",
		"kubeletArguments.rotate-certificates":             "true",
		"kubeletArguments.enable-controller-attach-detach": "true",
	}[key]
	return ok && text == want
}
