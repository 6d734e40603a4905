package platform

import (
	"bytes"
	"fmt"

	"github.com/slipway-platform/slipway/apigroup/build/building"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
)

// builderImage is the image of build pods.
const builderImage = "localhost/slipway-builder:current"

// builds are the controllers of builds.
func (h *host) builds() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	settings, err := h.buildSettings()
	if err != nil {
		return nil, err
	}
	return &building.Controllers{Client: client, Image: builderImage, Version: version.Slipway(), Settings: settings}, nil
}

// buildSettings are what the configuration says for all builds.
func (h *host) buildSettings() (settings building.Settings, err error) {
	plugins, err := h.Master.AdmissionPlugins()
	if err != nil {
		return settings, err
	}
	for _, plugin := range plugins {
		content := bytes.NewReader(plugin.Configuration)
		switch plugin.Name {
		case config.BuildDefaults:
			err = apiserver.DecodeConfig(content, "BuildDefaultsConfig", &settings.Defaults)
		case config.BuildOverrides:
			err = apiserver.DecodeConfig(content, "BuildOverridesConfig", &settings.Overrides)
		}
		if err != nil {
			return settings, fmt.Errorf("read configuration of admission plug-in %s: %w", plugin.Name, err)
		}
	}
	return settings, nil
}
