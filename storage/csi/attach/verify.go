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

// verifier compares attachments with what the driver knows, where it tells: an administrator of the storage may have detached a volume, or the storage lost it.
type verifier struct {
	*attacher
	// publishedOn finds the IDs of the nodes that volumes are attached to, by the volumes' IDs. It may leave out volumes that it was not asked for.
	publishedOn func(ctx context.Context, volumes []string) (map[string][]string, error)
	last        time.Time
}

// verifier is nil when the driver cannot tell.
func (a *attacher) verifier() *verifier {
	const (
		list  = csi.ControllerServiceCapability_RPC_LIST_VOLUMES
		nodes = csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES
		get   = csi.ControllerServiceCapability_RPC_GET_VOLUME
	)
	switch {
	case !a.publishes:
		return nil
	case a.Description.Can(list) && a.Description.Can(nodes):
		return &verifier{attacher: a, publishedOn: a.listVolumes}
	case a.Description.Can(get) && a.Description.Can(nodes):
		return &verifier{attacher: a, publishedOn: a.eachVolume}
	default:
		return nil
	}
}

// verifyKey is the one key of the loop, once there is something to verify.
func (a *attacher) verifyKey(object any) []controller.Key {
	if len(a.keys(object)) == 0 {
		return nil
	}
	return []controller.Key{{Name: a.name}}
}

// reconcile compares all attachments, and comes back.
func (v *verifier) reconcile(ctx context.Context, _ controller.Key) error {
	if left := v.Verify - time.Since(v.last); left > 0 && !v.last.IsZero() {
		return controller.After(left)
	}
	v.last = time.Now()
	if err := v.compare(ctx); err != nil {
		return err
	}
	return controller.After(v.Verify)
}

func (v *verifier) compare(ctx context.Context) error {
	all, err := v.attachments.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list VolumeAttachments: %w", err)
	}
	handles := map[*storagev1.VolumeAttachment]string{}
	var volumes []string
	for _, va := range all {
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
	published, err := v.publishedOn(ctx, volumes)
	if err != nil {
		return err
	}
	for va, handle := range handles {
		nodes, known := published[handle]
		if known && !slices.Contains(nodes, va.Annotations[nodeIDAnnotation]) {
			v.forced.add(va.Name)
			v.attach.Add(controller.Key{Name: va.Name})
		}
	}
	return nil
}

// listVolumes asks for all volumes of the driver, page by page. A volume that is not listed is gone, and attached nowhere.
func (a *attacher) listVolumes(ctx context.Context, volumes []string) (map[string][]string, error) {
	found := map[string][]string{}
	for _, volume := range volumes {
		found[volume] = nil
	}
	for token := ""; ; {
		page, err := a.Driver.Controller().ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token})
		if err != nil {
			return nil, err
		}
		for _, entry := range page.GetEntries() {
			found[entry.GetVolume().GetVolumeId()] = entry.GetStatus().GetPublishedNodeIds()
		}
		if token = page.GetNextToken(); token == "" {
			return found, nil
		}
	}
}

// eachVolume asks for one volume after the other.
func (a *attacher) eachVolume(ctx context.Context, volumes []string) (map[string][]string, error) {
	found := map[string][]string{}
	for _, volume := range volumes {
		answer, err := a.Driver.Controller().ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: volume})
		if err != nil {
			return nil, err
		}
		found[volume] = answer.GetStatus().GetPublishedNodeIds()
	}
	return found, nil
}
