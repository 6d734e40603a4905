package platform

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/slipway-platform/slipway/apigroup/image"
	"github.com/slipway-platform/slipway/apigroup/image/follow"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/registry"
)

// The image registry and what knows of it, made from the configuration.

// registry is the part that serves images.
func (h *host) registry() (Component, error) {
	settings := h.Master.Slipway.Registry
	if settings.Disabled {
		return idle("registry"), nil
	}
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	client.QPS, client.Burst = 200, 400
	logrus.SetLevel(logrus.WarnLevel) // distribution's logger, which writes a line for each request
	return &registry.Registry{
		Address: settings.BindAddress, CertFile: h.identity.Registry.Cert, KeyFile: h.identity.Registry.Key,
		Hosts: h.registryHosts(), Client: client, Advertise: h.address.AsSlice(), Dir: settings.Directory, ReadOnly: settings.ReadOnly,
	}, nil
}

// imageStreams is the part that imports images and tells workloads of new ones.
func (h *host) imageStreams() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	client.QPS, client.Burst = 50, 100
	policy := h.Master.ImagePolicyConfig
	streams := &follow.Streams{
		Client: client, PerMinute: policy.MaxScheduledImageImportsPerMinute,
		Interval: time.Duration(policy.ScheduledImageImportMinimumIntervalSeconds) * time.Second,
	}
	if policy.DisableScheduledImport {
		streams.Interval = 0
	}
	return streams, nil
}

// idle is a part that the configuration has turned off.
type idle string

// Name is the part's name.
func (i idle) Name() string { return string(i) }

// Run waits until ctx ends.
func (idle) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}

// registryName is how streams name the registry.
func (h *host) registryName() string {
	if name := h.Master.ImagePolicyConfig.InternalRegistryHostname; name != "" {
		return name
	}
	return registry.ServiceHost
}

// registryHosts are the names, with ports, under which the registry is known beside that of its service.
func (h *host) registryHosts() []string {
	return slices.DeleteFunc([]string{h.Master.ImagePolicyConfig.InternalRegistryHostname, h.Master.ImagePolicyConfig.ExternalRegistryHostname},
		func(name string) bool { return name == "" })
}

// registryNames are those names without ports, for the certificate.
func (h *host) registryNames() []string {
	var names []string
	for _, name := range h.registryHosts() {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		names = append(names, name)
	}
	return names
}

// imageOptions say how image streams are.
func (h *host) imageOptions() image.Options {
	policy := h.Master.ImagePolicyConfig
	options := image.Options{MaxBulkImport: policy.MaxImagesBulkImportedPerRepository}
	if !h.Master.Slipway.Registry.Disabled {
		options.Registry, options.Hosts = h.registryName(), append(h.registryHosts(), registry.ServiceHost)
	}
	if policy.AllowedRegistriesForImport != nil {
		options.Allowed = []image.AllowedRegistry{}
		for _, allowed := range *policy.AllowedRegistriesForImport {
			options.Allowed = append(options.Allowed, image.AllowedRegistry{Domain: allowed.DomainName, Insecure: allowed.Insecure})
		}
	}
	return options
}

// ensureRegistryConfig tells containerd where the cluster's registry is and which authority its certificate is from, so that a node pulls by the
// name of the service without resolving it.
func (h *host) ensureRegistryConfig() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	_, port, err := net.SplitHostPort(h.Master.Slipway.Registry.BindAddress)
	if err != nil {
		return fmt.Errorf("read address of registry: %w", err)
	}
	for _, name := range slices.Compact([]string{registry.ServiceHost, h.registryName()}) {
		dir := filepath.Join(h.Node.Slipway.RegistryConfigDirectory, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory of registry %q: %w", name, err)
		}
		settings := fmt.Sprintf("# Written by slipway at each start: changes are lost.\nserver = %q\n\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\nca = %q\n",
			"https://"+name, "https://"+net.JoinHostPort(h.address.String(), port), h.identity.CA.Cert)
		path := filepath.Join(dir, "hosts.toml")
		if there, err := os.ReadFile(path); err == nil && string(there) == settings {
			continue // two processes that start together never write it both
		}
		if err := atomicfile.Write(path, []byte(settings), 0o644); err != nil {
			return fmt.Errorf("write settings of registry %q: %w", name, err)
		}
	}
	return nil
}
