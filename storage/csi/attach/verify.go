package attach

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/controller"
)

// verifier compares attachments with the driver's state, if the driver reports it. An administrator
// might have detached a volume in the storage system, or the storage system might have lost an
// attachment.
type verifier struct {
	*attacher
	// listPublished returns the IDs of the nodes to which each volume is attached, keyed by volume
	// ID. The result might also contain volumes that were not requested.
	listPublished func(ctx context.Context, volumes []string) (map[string][]string, error)
	lastVerified  time.Time
}

// verifier returns the verifier, or nil if the driver cannot report attachments.
func (a *attacher) verifier() *verifier {
	const (
		list  = csi.ControllerServiceCapability_RPC_LIST_VOLUMES
		nodes = csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES
		get   = csi.ControllerServiceCapability_RPC_GET_VOLUME
	)
	switch {
	case !a.canPublish:
		return nil
	case a.Description.Can(list) && a.Description.Can(nodes):
		return &verifier{attacher: a, listPublished: a.listVolumes}
	case a.Description.Can(get) && a.Description.Can(nodes):
		return &verifier{attacher: a, listPublished: a.getVolumes}
	default:
		return nil
	}
}

// verifyKey maps each of the driver's VolumeAttachments to the controller's only key.
func (a *attacher) verifyKey(object any) []controller.Key {
	if len(a.keys(object)) == 0 {
		return nil
	}
	return []controller.Key{{Name: a.name}}
}

// reconcile verifies all attachments and requeues its key.
func (v *verifier) reconcile(ctx context.Context, _ controller.Key) error {
	if remaining := v.VerifyInterval - time.Since(v.lastVerified); remaining > 0 && !v.lastVerified.IsZero() {
		return controller.RequeueAfter(remaining)
	}
	v.lastVerified = time.Now()
	if err := v.compare(ctx); err != nil {
		return err
	}
	return controller.RequeueAfter(v.VerifyInterval)
}

func (v *verifier) compare(ctx context.Context) error {
	attachments, err := v.attachments.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list VolumeAttachments: %w", err)
	}
	handles := map[*storagev1.VolumeAttachment]string{}
	var volumes []string
	for _, va := range attachments {
		if va.Spec.Attacher != v.name || !va.Status.Attached || va.DeletionTimestamp != nil {
			continue
		}
		if spec, _, err := v.source(va); err == nil {
			handles[va] = spec.CSI.VolumeHandle
			volumes = append(volumes, spec.CSI.VolumeHandle)
		}
	}
	if len(volumes) == 0 {
		return nil
	}
	nodesByVolume, err := v.listPublished(ctx, volumes)
	if err != nil {
		return err
	}
	for va, handle := range handles {
		nodes, ok := nodesByVolume[handle]
		if ok && !slices.Contains(nodes, va.Annotations[nodeIDAnnotation]) {
			v.reattach.add(va.Name)
			v.attachQueue.Add(controller.Key{Name: va.Name})
		}
	}
	return nil
}

// listVolumes lists all of the driver's volumes. A volume that is not listed does not exist, so it
// is not attached to any node.
func (a *attacher) listVolumes(ctx context.Context, volumes []string) (map[string][]string, error) {
	nodesByVolume := map[string][]string{}
	for _, volume := range volumes {
		nodesByVolume[volume] = nil
	}
	for token := ""; ; {
		page, err := a.Driver.Controller().ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token})
		if err != nil {
			return nil, err
		}
		for _, entry := range page.GetEntries() {
			nodesByVolume[entry.GetVolume().GetVolumeId()] = entry.GetStatus().GetPublishedNodeIds()
		}
		if token = page.GetNextToken(); token == "" {
			return nodesByVolume, nil
		}
	}
}

// getVolumes queries each volume separately.
func (a *attacher) getVolumes(ctx context.Context, volumes []string) (map[string][]string, error) {
	nodesByVolume := map[string][]string{}
	for _, volume := range volumes {
		resp, err := a.Driver.Controller().ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: volume})
		if err != nil {
			return nil, err
		}
		nodesByVolume[volume] = resp.GetStatus().GetPublishedNodeIds()
	}
	return nodesByVolume, nil
}
