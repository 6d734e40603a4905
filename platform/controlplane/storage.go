package controlplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/admission/storageclient"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/csi/provision"
	"github.com/slipway-platform/slipway/storage/csi/snapshot"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func (h *Host) flexVolumes() (component.Component, error) { return host.ObserveDrivers(h.drivers) }

func (h *Host) attachDetach() (component.Component, error) {
	prober := volumeplugin.NewProber(h.drivers, volumeplugin.Options{Attachments: h.controllerAttachments()})
	return &kube.AttachDetach{Deps: h.deps, Prober: prober}, nil
}

func (h *Host) flexVolumeRecovery() (component.Component, error) {
	return &volumeplugin.DetachRecovery{Client: h.deps.Kube, Registry: h.drivers, Attachments: h.controllerAttachments()}, nil
}

// controllerAttachments returns the control plane's volume attachments. If there are several
// masters, the attachments are recorded in the cluster.
func (h *Host) controllerAttachments() *volumeplugin.Attachments {
	attachments := h.attachments
	if h.SeveralMasters() && attachments.Shared == nil {
		leader := &controller.LeaseHolder{
			Client: h.deps.Kube, Namespace: metav1.NamespaceSystem, Lease: ownControllers, Identity: h.Node.NodeName,
		}
		attachments.Shared = &volumeplugin.SharedRecords{Client: h.deps.Kube, Master: h.Node.NodeName, Confirm: leader.Confirm}
	}
	return attachments
}

// endedFlexVolumeCalls returns the component that informs the other masters that this master's
// earlier driver calls have ended.
func (h *Host) endedFlexVolumeCalls() (component.Component, error) {
	if !h.SeveralMasters() {
		return component.Disabled("flexvolume-ended-calls"), nil
	}
	return &volumeplugin.EndedCalls{Records: h.controllerAttachments().Shared}, nil
}

func (h *Host) expander() (component.Component, error) {
	prober := volumeplugin.NewProber(h.drivers, volumeplugin.Options{Attachments: h.controllerAttachments()})
	return &kube.Expander{Deps: h.deps, Prober: prober, KubeletRoot: h.Node.VolumeDirectory}, nil
}

// storageLimits returns the objects that local storage clients are allowed to change.
func storageLimits() storageclient.Limits {
	finalizers, annotations := provision.ClaimMetadata()
	return storageclient.Limits{
		Group: pki.StorageGroup, Driver: local.DriverName,
		ClaimFinalizers: append(finalizers, snapshot.ClaimFinalizers()...), ClaimAnnotations: annotations,
		SnapshotFinalizers: snapshot.Finalizers(), CapacityNamespace: host.CapacityNamespace,
	}
}
