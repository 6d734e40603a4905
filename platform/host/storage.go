package host

import (
	"time"

	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Drivers returns a process's registry of FlexVolume drivers.
func (h *Host) Drivers(process string) *flexvolume.Registry {
	return &flexvolume.Registry{Dir: h.Node.VolumePluginDir(), KeepDir: h.DriverCopies(process), Settings: h.DriverSettings}
}

// ObserveDrivers returns the component that provides a registry of FlexVolume drivers and its
// metrics. The control plane and the node each have their own registry.
func ObserveDrivers(drivers *flexvolume.Registry) (component.Component, error) {
	metrics, err := volumeplugin.NewMetrics()
	if err != nil {
		return nil, err
	}
	drivers.Observer = metrics
	return drivers, nil
}

// Attachments returns the FlexVolume attachments of a process.
func (h *Host) Attachments(process string) *volumeplugin.Attachments {
	return &volumeplugin.Attachments{Dir: h.Path("flexvolume", "attached", process)}
}

// DriverSettings returns the settings for a FlexVolume driver.
func (h *Host) DriverSettings(driver string) flexvolume.Settings {
	configured := h.Node.Slipway.FlexVolume[driver]
	settings := flexvolume.Settings{
		Timeouts:    map[flexvolume.Operation]time.Duration{},
		Concurrency: configured.Concurrency,
		VolumeName:  flexvolume.Naming(configured.VolumeName),
	}
	for op, timeout := range configured.Timeouts {
		settings.Timeouts[flexvolume.Operation(op)] = timeout.Duration
	}
	return settings
}

// CapacityNamespace is the namespace of the CSIStorageCapacity objects for local storage.
const CapacityNamespace = "openshift-infra"

// LocalStorageLabel is the label of nodes with local storage. A node keeps the label while it
// restarts, so that pods wait for the driver. The label is removed if the node's local storage is
// disabled or fails.
const LocalStorageLabel = "slipway.openshift.io/local-storage"
