package controlplane

import (
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/apigroup/apps/deployment"
	"github.com/slipway-platform/slipway/apigroup/build"
	"github.com/slipway-platform/slipway/apigroup/build/buildcontroller"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/catalogcontroller"
	"github.com/slipway-platform/slipway/apigroup/template/instance"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/internal/buildpod"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/table"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// deployments returns the component that runs the DeploymentConfig controllers. The image for
// Custom strategies contains oc.
func (h *Host) deployments() (component.Component, error) {
	return &deployment.Controllers{Deps: h.deps, Image: image.DeployerName, CustomImage: image.SelfName}, nil
}

// templateInstances returns the component that creates the objects of TemplateInstances. It derives
// generated values from the key that signs tokens.
func (h *Host) templateInstances() (component.Component, error) {
	secret, err := os.ReadFile(h.Credentials.ServiceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("read key for template instances: %w", err)
	}
	return &instance.Instances{Deps: h.deps, Secret: secret}, nil
}

// serviceCatalog returns the component that sends requests to the service catalog's brokers. The
// key that signs tokens is also the key for parameter checksums.
func (h *Host) serviceCatalog() (component.Component, error) {
	secret, err := os.ReadFile(h.Credentials.ServiceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("read key for the service catalog: %w", err)
	}
	return &catalogcontroller.Controllers{Deps: h.deps, Dialer: h.Outbound(), Domain: h.Node.DNSDomain, Secret: secret}, nil
}

// builds returns the component that runs the build controllers.
func (h *Host) builds() (component.Component, error) {
	initial, err := buildSettings(h.Config)
	if err != nil {
		return nil, err
	}
	metrics, err := buildcontroller.NewMetrics()
	if err != nil {
		return nil, err
	}
	settings := buildcontroller.NewSettingsStore(initial)
	controllers := &buildcontroller.Controllers{
		Deps: h.deps, Image: buildpod.Image, Version: version.Slipway(), SeccompProfile: node.BuildProfile,
		Settings: settings, Metrics: metrics,
		JenkinsService: h.Master.JenkinsPipelineConfig.ServiceName, JenkinsProvisioned: h.Master.ProvisionsJenkins(),
	}
	if !h.Node.Slipway.LocalStorage.Disabled {
		controllers.CacheDriver, controllers.CacheLabel = local.DriverName, host.LocalStorageLabel
	}
	return table.Adjustable{Component: controllers, Adjustments: []reload.Adjustment{{
		Keys: []string{config.PluginKey(config.BuildDefaults), config.PluginKey(config.BuildOverrides)},
		Prepare: func(next *config.Config) (func(), error) {
			changed, err := buildSettings(next)
			return func() { settings.Replace(changed) }, err
		},
	}}}, nil
}

// jenkins returns the settings of the Jenkins server that is created in projects with pipelines, or
// nil if no Jenkins server is created.
func (h *Host) jenkins() *build.Jenkins {
	c := h.Master.JenkinsPipelineConfig
	if !h.Master.ProvisionsJenkins() {
		return nil
	}
	return &build.Jenkins{Namespace: c.TemplateNamespace, Template: c.TemplateName, Service: c.ServiceName, Parameters: c.Parameters}
}

// buildSettings returns the settings that a configuration specifies for all builds.
func buildSettings(c *config.Config) (*buildcontroller.Settings, error) {
	plugins, err := c.Master.AdmissionPlugins()
	if err != nil {
		return nil, err
	}
	content := map[string][]byte{}
	for _, plugin := range plugins {
		content[plugin.Name] = plugin.Configuration
	}
	return buildcontroller.ReadSettings(content[config.BuildDefaults], content[config.BuildOverrides])
}
