package platform

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// flexVolumes returns the component that provides the registry of FlexVolume drivers and its
// metrics. The control plane and the node each have their own registry.
func (h *Host) flexVolumes() (component.Component, error) {
	metrics, err := volumeplugin.NewMetrics()
	if err != nil {
		return nil, err
	}
	drivers := h.drivers()
	drivers.Observer = metrics
	return drivers, nil
}

func (h *Host) attachDetach() (component.Component, error) {
	prober := volumeplugin.NewProber(h.drivers(), volumeplugin.Options{Attachments: h.controllerAttachments()})
	return &kube.AttachDetach{Deps: h.deps, Prober: prober}, nil
}

func (h *Host) flexVolumeRecovery() (component.Component, error) {
	return &volumeplugin.DetachRecovery{Client: h.deps.Kube, Registry: h.drivers(), Attachments: h.controllerAttachments()}, nil
}

// controllerAttachments returns the control plane's volume attachments. If there are several
// masters, the attachments are recorded in the cluster.
func (h *Host) controllerAttachments() *volumeplugin.Attachments {
	attachments := h.attachments()
	if h.SeveralMasters() && attachments.Shared == nil {
		leader := &controller.LeaseHolder{
			Client: h.deps.Kube, Namespace: metav1.NamespaceSystem, Lease: ownControllers, Identity: h.Node.NodeName,
		}
		attachments.Shared = &volumeplugin.SharedRecords{Client: h.deps.Kube, Master: h.Node.NodeName, Confirm: leader.Confirm}
	}
	return attachments
}

// endedFlexVolumeCalls returns the component that tells the other masters that this master's
// earlier driver calls have ended.
func (h *Host) endedFlexVolumeCalls() (component.Component, error) {
	if !h.SeveralMasters() {
		return component.Disabled("flexvolume-ended-calls"), nil
	}
	return &volumeplugin.EndedCalls{Records: h.controllerAttachments().Shared}, nil
}

func (h *Host) expander() (component.Component, error) {
	prober := volumeplugin.NewProber(h.drivers(), volumeplugin.Options{})
	return &kube.Expander{Deps: h.deps, Prober: prober, KubeletRoot: h.Node.VolumeDirectory}, nil
}

func (h *Host) flexVolumeCleanup() (component.Component, error) {
	return &volumeplugin.DeviceCleanup{
		Registry: h.drivers(), KubeletRoot: h.Node.VolumeDirectory, Attachments: h.attachments(),
	}, nil
}

// usesDriver reports whether a volume of a FlexVolume driver might be in use on the node.
func (h *Host) usesDriver(driver string) bool {
	return flexvolume.Uses(h.Node.VolumeDirectory, driver)
}

// flexVolumeReport returns the component that publishes the drivers' states on the Node object.
func (h *Host) flexVolumeReport() (component.Component, error) {
	client, err := pki.NewClient(h.credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return &volumeplugin.Report{
		Client: client, NodeName: h.Node.NodeName, Registry: h.drivers(),
		KeepDirs: []string{h.DriverCopies(Node), h.DriverCopies(ControlPlane)},
	}, nil
}
