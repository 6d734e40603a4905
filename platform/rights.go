package platform

import (
	"github.com/slipway-platform/slipway/apigroup/authorization"
	"github.com/slipway-platform/slipway/apigroup/project"
	"github.com/slipway-platform/slipway/apigroup/security"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/serviceaccount"
	"github.com/slipway-platform/slipway/controller/serviceca"
)

// Who may do what, made from the configuration.

// rights are the API groups and admission plug-ins of projects, roles and security context constraints.
func (h *host) rights() ([]apiserver.Feature, error) {
	options := func(c *config.Config) project.Options {
		p := c.Master.ProjectConfig
		return project.Options{
			RequestTemplate: p.ProjectRequestTemplate, RequestMessage: p.ProjectRequestMessage, DefaultNodeSelector: p.DefaultNodeSelector,
		}
	}
	settings, err := project.NewSettings(options(h.Config))
	if err != nil {
		return nil, err
	}
	h.adjust(func(next *config.Config) (func(), error) { return settings.Prepare(options(next)) },
		"projectConfig.projectRequestTemplate", "projectConfig.projectRequestMessage", "projectConfig.defaultNodeSelector")
	return []apiserver.Feature{project.Feature(settings), authorization.Feature(), security.Feature()}, nil
}

// allocator gives namespaces their ranges of users, groups and labels.
func (h *host) allocator() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	c := h.Master.ProjectConfig.SecurityAllocator
	return &security.Allocator{Client: client, UIDRange: c.UIDAllocatorRange, MCSRange: c.MCSAllocatorRange, LabelsPerProject: c.MCSLabelsPerProject}, nil
}

// projects keeps the service accounts and roles of projects, and lets deleted ones go.
func (h *host) projects() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &project.Controller{Client: client, Accounts: h.Master.ServiceAccountConfig.ManagedNames}, nil
}

// serviceAccountSecrets makes the tokens and registry credentials of service accounts.
func (h *host) serviceAccountSecrets() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &serviceaccount.Secrets{Client: client, Domain: h.Node.DNSDomain, Hosts: h.registryHosts()}, nil
}

// serviceCertificates issues the certificates of services.
func (h *host) serviceCertificates() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	signer := h.identity.ServiceSigner
	return &serviceca.Certificates{
		Client: client, CertFile: signer.Cert, KeyFile: signer.Key, BundleFile: h.identity.ServiceCA, Domain: h.Node.DNSDomain,
	}, nil
}
