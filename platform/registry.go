package platform

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/apigroup/image"
	"github.com/slipway-platform/slipway/apigroup/image/imagecontroller"
	"github.com/slipway-platform/slipway/apigroup/image/sigstore"
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
	storage := registry.Directory(settings.Directory, settings.ReadOnly)
	if settings.Configuration != "" {
		given, err := registry.ReadConfiguration(settings.Configuration)
		if err != nil {
			return nil, fmt.Errorf("read slipway.registry.configuration: %w", err)
		}
		if storage = given.Storage; settings.ReadOnly {
			storage["maintenance"] = registry.ReadOnly()
		}
	}
	logrus.SetLevel(logrus.WarnLevel) // distribution's logger, which writes a line for each request
	bytes, share, err := settings.Reserved()
	if err != nil {
		return nil, err
	}
	quota, limited, err := settings.Quota()
	if err != nil {
		return nil, err
	}
	if !limited {
		quota = registry.Unlimited
	}
	return &registry.Registry{
		Reserve: registry.Reserve{Bytes: bytes, Share: share}, ProjectQuota: quota,
		Address: settings.BindAddress, CertFile: h.identity.Registry.Cert, KeyFile: h.identity.Registry.Key,
		Hosts: h.registryHosts(), Client: client, Advertise: h.address.AsSlice(), Remotes: h.remotes(), Storage: storage, Route: h.registryRoute(),
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
	streams := &imagecontroller.Streams{
		Client: client, PerMinute: policy.MaxScheduledImageImportsPerMinute,
		Interval: time.Duration(policy.ScheduledImageImportMinimumIntervalSeconds) * time.Second,
	}
	if policy.DisableScheduledImport {
		streams.Interval = 0
	}
	return streams, nil
}

// imageSignatures is the part that imports signatures of images of other registries.
func (h *host) imageSignatures() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &sigstore.Importer{Client: client, Directory: h.Master.Slipway.Registry.SignatureDirectory, Outbound: h.outbound()}, nil
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
	return slices.DeleteFunc([]string{h.Master.ImagePolicyConfig.InternalRegistryHostname, h.Master.ImagePolicyConfig.ExternalRegistryHostname, h.registryRoute()},
		func(name string) bool { return name == "" })
}

// registryRoute is the host of the route to the registry.
func (h *host) registryRoute() string {
	return "docker-registry-default." + h.Master.RoutingConfig.Subdomain
}

// publicRegistry is the name of the registry for clients outside of the cluster, if they can reach one: the configured name, or the route's host unless that
// is below the cluster's own domain, which nobody outside resolves.
func (h *host) publicRegistry() string {
	if name := h.Master.ImagePolicyConfig.ExternalRegistryHostname; name != "" || strings.HasSuffix(h.registryRoute(), ".svc."+h.Node.DNSDomain) {
		return name
	}
	return h.registryRoute()
}

// registryNames are those names without ports and that of the route, for the certificate.
func (h *host) registryNames() []string {
	names := []string{h.registryRoute()}
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
	options := image.Options{MaxBulkImport: policy.MaxImagesBulkImportedPerRepository, Registries: h.remotes()}
	if !h.Master.Slipway.Registry.Disabled {
		options.Registry, options.Hosts = h.registryName(), append(h.registryHosts(), registry.ServiceHost)
		options.PublicRegistry = h.publicRegistry()
	}
	if policy.AllowedRegistriesForImport != nil {
		options.Allowed = []image.AllowedRegistry{}
		for _, allowed := range *policy.AllowedRegistriesForImport {
			options.Allowed = append(options.Allowed, image.AllowedRegistry{Domain: allowed.DomainName, Insecure: allowed.Insecure})
		}
	}
	return options
}

// writtenBySlipway begins the settings of registries that are made at each start.
const writtenBySlipway = "# Written by slipway at each start: changes are lost.\n"

// ensureRegistryConfig tells containerd where the cluster's registry is and which authority its certificate is from, so that a node pulls by the
// name of the service, or of the route, without resolving it. An administrator's own settings of one of the names stay.
func (h *host) ensureRegistryConfig() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	_, port, err := net.SplitHostPort(h.Master.Slipway.Registry.BindAddress)
	if err != nil {
		return fmt.Errorf("read address of registry: %w", err)
	}
	names := append(h.registryHosts(), registry.ServiceHost)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		dir := filepath.Join(h.Node.Slipway.RegistryConfigDirectory, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory of registry %q: %w", name, err)
		}
		settings := fmt.Sprintf(writtenBySlipway+"server = %q\n\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\nca = %q\n",
			"https://"+name, "https://"+net.JoinHostPort(h.address.String(), port), h.identity.CA.Cert)
		path := filepath.Join(dir, "hosts.toml")
		if there, err := os.ReadFile(path); err == nil && (string(there) == settings || !strings.HasPrefix(string(there), writtenBySlipway)) {
			continue // two processes that start together never write it both
		}
		if err := atomicfile.Write(path, []byte(settings), 0o644); err != nil {
			return fmt.Errorf("write settings of registry %q: %w", name, err)
		}
	}
	return nil
}

// registryCommand is the registry without a cluster.
func registryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "registry CONFIGURATION",
		Short:   "Serve images without a cluster: a registry of its own",
		GroupID: "host",
		Long: `Serve images without a cluster. The file is in the format of distribution's registry (docker-registry), whose variables of the environment
count too, for instance REGISTRY_HTTP_ADDR and REGISTRY_STORAGE_S3_SECRETKEY:

  version: 0.1
  storage: {filesystem: {rootdirectory: /srv/registry}, delete: {enabled: true}}
  http: {addr: ":5000", tls: {certificate: /etc/registry/tls.crt, key: /etc/registry/tls.key}}
  auth: {htpasswd: {realm: registry, path: /etc/registry/htpasswd}}

Storage is filesystem or s3, authentication htpasswd or token. Settings that are not understood are refused. It runs until it is told to end by SIGTERM, and
tells systemd when it serves.`,
		Example: "  slipway registry /etc/docker/registry/config.yml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := registry.ReadConfiguration(args[0])
			if err != nil {
				return err
			}
			logrus.SetLevel(logrus.WarnLevel)
			if level, err := logrus.ParseLevel(string(settings.Log.Level)); err == nil && level < logrus.InfoLevel {
				logrus.SetLevel(level)
			}
			return runForeground(cmd.Context(), []Part{{Component: &announced{&registry.Standalone{Settings: settings}}}})
		},
	}
}

// announced is a part that systemd is told of.
type announced struct{ Component }

// Run tells systemd when the part is ready.
func (a *announced) Run(ctx context.Context, ready func()) error {
	return a.Component.Run(ctx, func() {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
		ready()
	})
}
