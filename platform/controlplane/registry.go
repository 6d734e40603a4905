package controlplane

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/slipway-platform/slipway/apigroup/image"
	"github.com/slipway-platform/slipway/apigroup/image/imagecontroller"
	"github.com/slipway-platform/slipway/apigroup/image/sigstore"
	"github.com/slipway-platform/slipway/internal/diskspace"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// inodeReserve is the share of inodes that pushes must leave free.
const inodeReserve = 0.05

// registry returns the component that runs the image registry or, if the registry is always on
// another master, forwards requests to it.
func (h *Host) registry() (component.Component, error) {
	settings := h.Master.Slipway.Registry
	if settings.Disabled {
		return component.Disabled("registry"), nil
	}
	if h.UsesRemoteRegistry() {
		return &registry.Forward{
			Address: settings.BindAddress, CertFile: h.Credentials.Registry.Cert, KeyFile: h.Credentials.Registry.Key,
			Host: h.RegistryNames().Stream(), CAFile: h.Credentials.CA.Cert, Target: h.LastRegistryAddress,
		}, nil
	}
	storage, err := registry.ReadStorage(settings.Directory, settings.Configuration, settings.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("read slipway.registry.configuration: %w", err)
	}
	logrus.SetLevel(logrus.WarnLevel) // distribution's logger writes a line for each request
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
		Recorder: h.recorder,
		Reserve:  diskspace.Reserve{Bytes: bytes, Share: share, Inodes: inodeReserve}, ProjectQuota: quota,
		Address: settings.BindAddress, CertFile: h.Credentials.Registry.Cert, KeyFile: h.Credentials.Registry.Key,
		Hosts: h.RegistryNames().Aliases(), Client: h.limitedConfig(200, 400), Deps: h.deps, Advertise: h.Address.AsSlice(),
		Remotes: h.Registries(), Storage: storage, Route: h.RegistryNames().Route(),
	}, nil
}

// imageStreams returns the component that imports images and updates workloads when image streams
// change.
func (h *Host) imageStreams() (component.Component, error) {
	policy := h.Master.ImagePolicyConfig
	streams := &imagecontroller.Streams{
		Deps: h.deps, PerMinute: policy.MaxScheduledImageImportsPerMinute,
		Interval: time.Duration(policy.ScheduledImageImportMinimumIntervalSeconds) * time.Second,
	}
	if policy.DisableScheduledImport {
		streams.Interval = 0
	}
	return streams, nil
}

// imageSignatures returns the component that imports image signatures from other registries.
func (h *Host) imageSignatures() (component.Component, error) {
	return &sigstore.Importer{
		Deps: h.deps, Directory: h.Master.Slipway.Registry.SignatureDirectory, Outbound: h.Outbound(),
	}, nil
}

// imageOptions returns the options for image streams.
func (h *Host) imageOptions() image.Options {
	policy := h.Master.ImagePolicyConfig
	options := image.Options{MaxBulkImport: policy.MaxImagesBulkImportedPerRepository, Registries: h.Registries()}
	if !h.Master.Slipway.Registry.Disabled {
		names := h.RegistryNames()
		options.Registry, options.Hosts, options.PublicRegistry = names.Stream(), names.All(), names.Public()
	}
	if policy.AllowedRegistriesForImport != nil {
		options.Allowed = []image.AllowedRegistry{}
		for _, allowed := range *policy.AllowedRegistriesForImport {
			options.Allowed = append(options.Allowed, image.AllowedRegistry{Domain: allowed.DomainName, Insecure: allowed.Insecure})
		}
	}
	return options
}
