package host

import "github.com/slipway-platform/slipway/catalog/ansible"

// AnsibleOptions returns the settings of the Ansible service broker.
func (h *Host) AnsibleOptions() ansible.Options {
	c := h.Master.AnsibleServiceBrokerConfig
	options := ansible.Options{
		Namespaces: c.Namespaces, WhiteList: c.WhiteList, BlackList: c.BlackList, SandboxRole: c.SandboxRole,
		KeepNamespace: c.KeepNamespace, KeepNamespaceOnError: c.KeepNamespaceOnError, Pool: h.Registries(),
	}
	for _, s := range c.Secrets {
		options.Secrets = append(options.Secrets, ansible.Secret{Name: s.Secret, Bundle: s.ApbName})
	}
	for _, r := range c.Registries {
		options.Registries = append(options.Registries, ansible.Registry(r))
	}
	return options
}
