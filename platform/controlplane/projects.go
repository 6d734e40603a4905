package controlplane

import (
	"github.com/slipway-platform/slipway/apigroup/authorization"
	"github.com/slipway-platform/slipway/apigroup/project"
	"github.com/slipway-platform/slipway/apigroup/security"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/controller/serviceaccount"
	"github.com/slipway-platform/slipway/controller/serviceca"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// projectFeatures returns the API groups and admission plugins for projects, roles and security
// context constraints.
func (h *Host) projectFeatures() ([]apiserver.Feature, reload.Adjustment, error) {
	options := func(c *config.Config) project.Options {
		p := c.Master.ProjectConfig
		return project.Options{
			RequestTemplate: p.ProjectRequestTemplate, RequestMessage: p.ProjectRequestMessage,
			DefaultNodeSelector: p.DefaultNodeSelector,
			Domains:             []string{h.Node.DNSDomain, c.Master.RoutingConfig.Subdomain},
		}
	}
	settings, err := project.NewSettings(options(h.Config))
	if err != nil {
		return nil, reload.Adjustment{}, err
	}
	adjustment := reload.Adjustment{
		Keys: []string{
			"projectConfig.projectRequestTemplate", "projectConfig.projectRequestMessage", "projectConfig.defaultNodeSelector",
		},
		Prepare: func(next *config.Config) (func(), error) { return settings.Prepare(options(next)) },
	}
	return []apiserver.Feature{project.Feature(settings), authorization.Feature(), security.Feature()}, adjustment, nil
}

// allocator returns the component that allocates UID ranges and SELinux labels to namespaces.
func (h *Host) allocator() (component.Component, error) {
	c := h.Master.ProjectConfig.SecurityAllocator
	return &security.Allocator{
		Deps: h.deps, UIDRange: c.UIDAllocatorRange, MCSRange: c.MCSAllocatorRange, LabelsPerProject: c.MCSLabelsPerProject,
	}, nil
}

// projects returns the component that creates projects' service accounts and role bindings, and
// finalizes deleted projects.
func (h *Host) projects() (component.Component, error) {
	return &project.Controller{Deps: h.deps, Accounts: h.Master.ServiceAccountConfig.ManagedNames}, nil
}

// serviceAccountSecrets returns the component that creates tokens and registry credentials for
// service accounts.
func (h *Host) serviceAccountSecrets() (component.Component, error) {
	return &serviceaccount.Secrets{Deps: h.deps, Domain: h.Node.DNSDomain, Hosts: h.RegistryNames().Aliases()}, nil
}

// serviceCertificates returns the component that issues serving certificates for services.
func (h *Host) serviceCertificates() (component.Component, error) {
	signer := h.Credentials.ServiceSigner
	return &serviceca.Certificates{
		Deps: h.deps, CertFile: signer.Cert, KeyFile: signer.Key, BundleFile: h.Credentials.ServiceCA, Domain: h.Node.DNSDomain,
	}, nil
}
