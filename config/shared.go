package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ownKeys returns the MasterConfig keys, or key prefixes, that can differ between the masters of a
// cluster: settings of a single host, such as addresses, certificates, directories and limits.
func ownKeys() []string {
	return []string{
		"servingInfo.certFile", "servingInfo.keyFile", "servingInfo.namedCertificates",
		"etcdConfig", "etcdClientInfo", "masterClients", "kubeletClientInfo", "dnsConfig",
		"kubernetesMasterConfig.masterIP", "auditConfig.auditFilePath",
		"slipway.registry.directory", "slipway.registry.reserve", "slipway.registry.signatureDirectory",
		"slipway.etcdSnapshots.directory",
	}
}

// SharedSettings returns the settings that must be the same on all masters of a cluster. It maps
// the keys of the effective MasterConfig, such as `networkConfig.serviceNetworkCIDR`, to a hash of
// each value.
func (c *Config) SharedSettings() (map[string]string, error) {
	root, err := encode(reflect.ValueOf(*c.Master))
	if err != nil {
		return nil, fmt.Errorf("read shared settings: %w", err)
	}
	settings := map[string]string{}
	if err := c.flatten(root, "", settings); err != nil {
		return nil, fmt.Errorf("read shared settings: %w", err)
	}
	for _, own := range ownKeys() {
		maps.DeleteFunc(settings, func(key, _ string) bool { return key == own || strings.HasPrefix(key, own+".") })
	}
	return settings, nil
}

// flatten adds the hashes of all values below a node. It hashes a list as a single value.
func (c *Config) flatten(node *yaml.Node, key string, settings map[string]string) error {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			below := node.Content[i].Value
			if key != "" {
				below = key + "." + below
			}
			if err := c.flatten(node.Content[i+1], below, settings); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	// Remove the data directory, because it can differ between hosts.
	sum := sha256.Sum256(bytes.ReplaceAll(text, []byte(c.DataDir), nil))
	settings[key] = hex.EncodeToString(sum[:8])
	return nil
}

// Differences returns the keys whose values differ, sorted.
func Differences(a, b map[string]string) []string {
	keys := map[string]bool{}
	for key, value := range a {
		if b[key] != value {
			keys[key] = true
		}
	}
	for key := range b {
		if _, exists := a[key]; !exists {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// Contradictions returns the keys that this host's MasterConfig sets to a value that differs from
// the cluster's shared settings. For the file that the first start wrote, it returns no keys.
func (c *Config) Contradictions(cluster map[string]string) ([]string, error) {
	content, err := os.ReadFile(c.master.file)
	if os.IsNotExist(err) || string(content) == defaultMasterFile() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read shared settings: %w", err)
	}
	own, err := c.SharedSettings()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(Differences(own, cluster), func(key string) bool { return !c.master.sets(key) }), nil
}

// sets reports whether the document contains a key or part of the key's value.
func (d *document) sets(key string) bool {
	for line := range d.lines {
		if line == key || strings.HasPrefix(line, key+".") || strings.HasPrefix(line, key+"[") {
			return true
		}
	}
	return false
}
