package platform

import (
	"bytes"
	"fmt"

	"github.com/slipway-platform/slipway/apigroup/build/buildcontroller"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/buildpod"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/storage/local"
)

// builds are the controllers of builds.
func (h *host) builds() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	decided, err := buildDecisions(h.Config)
	if err != nil {
		return nil, err
	}
	settings := buildcontroller.NewSettingsStore(decided)
	h.adjust(func(next *config.Config) (func(), error) {
		decided, err := buildDecisions(next)
		return func() { settings.Replace(decided) }, err
	}, pluginKey(config.BuildDefaults), pluginKey(config.BuildOverrides))
	metrics, err := buildcontroller.NewMetrics()
	if err != nil {
		return nil, err
	}
	made := &buildcontroller.Controllers{Client: client, Image: buildpod.Image, Version: version.Slipway(), SeccompProfile: node.BuildProfile, Settings: settings, Metrics: metrics}
	if !h.Node.Slipway.LocalStorage.Disabled {
		made.CacheDriver, made.CacheLabel = local.DriverName, localStorageLabel
	}
	return made, nil
}

// buildDecisions are what a configuration says for all builds.
func buildDecisions(c *config.Config) (*buildcontroller.Settings, error) {
	plugins, err := c.Master.AdmissionPlugins()
	if err != nil {
		return nil, err
	}
	decided := &buildcontroller.Settings{}
	for _, plugin := range plugins {
		content := bytes.NewReader(plugin.Configuration)
		switch plugin.Name {
		case config.BuildDefaults:
			err = apiserver.DecodeConfig(content, "BuildDefaultsConfig", &decided.Defaults)
		case config.BuildOverrides:
			err = apiserver.DecodeConfig(content, "BuildOverridesConfig", &decided.Overrides)
		}
		if err != nil {
			return nil, fmt.Errorf("read configuration of admission plug-in %s: %w", plugin.Name, err)
		}
	}
	return decided, nil
}
