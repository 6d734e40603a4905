package kube

import (
	"encoding/json"
	"fmt"

	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Plugin enables or disables an admission plugin.
type Plugin struct {
	Name     string
	Disabled bool
	// Configuration is the plugin's own configuration in JSON, or nil.
	Configuration []byte
}

// setPlugins enables and disables the configured plugins, in addition to the defaults. It writes
// the plugins' configuration to AdmissionFile, because upstream reads it from a file.
func (s *APIServer) setPlugins(admission *kubeoptions.AdmissionOptions) error {
	type pluginConfig struct {
		Name          string          `json:"name"`
		Configuration json.RawMessage `json:"configuration"`
	}
	var configs []pluginConfig
	enabled, disabled := []string{"NodeRestriction"}, []string(nil)
	for _, plugin := range s.Plugins {
		switch {
		case plugin.Disabled:
			disabled = append(disabled, plugin.Name)
			continue
		case plugin.Configuration != nil:
			configs = append(configs, pluginConfig{plugin.Name, plugin.Configuration})
		}
		enabled = append(enabled, plugin.Name)
	}
	generic := admission.GenericAdmission
	generic.ConfigFile, generic.EnablePlugins, generic.DisablePlugins = s.AdmissionFile, enabled, disabled
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": configs,
	})
	if err != nil {
		return fmt.Errorf("write admission configuration: %w", err)
	}
	return atomicfile.Write(s.AdmissionFile, content, 0o600)
}
