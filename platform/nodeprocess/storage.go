package nodeprocess

import (
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func (h *Host) flexVolumes() (component.Component, error) { return host.ObserveDrivers(h.drivers) }

func (h *Host) flexVolumeCleanup() (component.Component, error) {
	return &volumeplugin.DeviceCleanup{
		Registry: h.drivers, KubeletRoot: h.Node.VolumeDirectory, Attachments: h.attachments,
	}, nil
}

// usesDriver reports whether a volume of a FlexVolume driver might be in use on the node.
func (h *Host) usesDriver(driver string) bool {
	return flexvolume.Uses(h.Node.VolumeDirectory, driver)
}

// flexVolumeReport returns the component that publishes the drivers' states on the Node object.
func (h *Host) flexVolumeReport() (component.Component, error) {
	client, err := pki.NewClient(h.Credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return &volumeplugin.Report{
		Client: client, NodeName: h.Node.NodeName, Registry: h.drivers,
		KeepDirs: []string{h.DriverCopies(host.Node), h.DriverCopies(host.ControlPlane)},
	}, nil
}
