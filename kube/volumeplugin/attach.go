package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// attacher attaches volumes in the controller. On the node, it waits for the volumes' devices and
// mounts them.
type attacher struct{ device }

// detacher undoes attacher's operations.
type detacher struct{ device }

// device contains the fields that attacher and detacher share.
type device struct{ plugin *plugin }

// volume converts a volume spec to the FlexVolume engine's type. The storage name distinguishes
// inline volumes that have the same name in different pods. If the driver does not name an inline
// volume, the driver receives the storage name, because detach also receives it.
func (d device) volume(spec *volume.Spec) (flexvolume.Volume, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return flexvolume.Volume{}, err
	}
	vol := source.volume(spec.Name())
	if !source.inline {
		return vol, nil
	}
	if vol.ID, err = d.plugin.GetVolumeName(spec); err != nil {
		return flexvolume.Volume{}, err
	}
	if vol.ID == inlineName(vol) { // a record from before a restart contains only the name
		vol.Name = vol.ID
	}
	return vol, nil
}

// Attach attaches the volume to the node and returns the device path on the node, or "" if the
// driver does not return a device. If the driver does not support attach, Attach returns "" and no
// error.
func (a *attacher) Attach(spec *volume.Spec, node types.NodeName) (string, error) {
	ctx := context.Background()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return "", err
	}
	vol, err := a.volume(spec)
	if err != nil {
		return "", err
	}
	name, err := a.plugin.GetVolumeName(spec)
	if err != nil {
		return "", err
	}
	c := call{
		attachment: a.plugin.attachment(name, node), exclusive: !util.IsMultiAttachAllowed(spec), timeout: driver.Timeout(flexvolume.OpAttach),
	}
	path := ""
	attach := func() error {
		return a.plugin.attachments.attach(c, func(ctx context.Context) (err error) {
			path, err = driver.Attach(ctx, vol, string(node))
			return err
		})
	}
	err = attach()
	if elsewhere := (elsewhereError{}); errors.As(err, &elsewhere) && a.plugin.detachLost(ctx, elsewhere) {
		err = attach()
	}
	if errors.Is(err, flexvolume.ErrNotSupported) {
		return "", nil
	}
	return path, a.plugin.explain(err)
}

// detachLost detaches a volume from the nodes that prevent its attachment. Upstream requests the
// attachment only if the other detaches have failed, or if it has lost track of the other
// attachments. It loses track of them if an earlier leader changed the nodes' statuses late.
// detachLost reports whether the volume might be attachable now.
func (p *plugin) detachLost(ctx context.Context, elsewhere elsewhereError) bool {
	for _, node := range elsewhere.nodes {
		if err := p.detachFrom(ctx, p.attachment(elsewhere.volume, types.NodeName(node))); err != nil {
			slog.Warn("cannot detach FlexVolume that another node needs", "volume", elsewhere.volume, "driver", p.name, "node", node, "error", err)
			return false
		}
	}
	return true
}

// detachFrom detaches a lost volume. If the node is off, the attachment's record is removed even if
// the detach fails. Otherwise, the record could stay forever, because the driver might never be
// able to detach the volume.
func (p *plugin) detachFrom(ctx context.Context, lost attachment) error {
	client := p.host.GetKubeClient()
	used, err := isInUse(ctx, client, lost)
	if err != nil {
		return err
	}
	if used {
		return errors.New("the node uses the volume")
	}
	_, err = p.attachments.release(ctx, p.registry, lost)
	off, offErr := isOff(ctx, client, lost.node)
	if offErr != nil || !off {
		return errors.Join(err, offErr)
	}
	if err != nil {
		slog.Warn("cannot detach FlexVolume from a node that is off", "volume", lost.volume, "driver", p.name, "node", lost.node, "error", err)
	}
	return p.attachments.remove(lost)
}

// WaitForAttach runs on the node and waits for the volume's device to appear. If the driver does
// not support this operation, WaitForAttach returns the device that Attach returned. If the device
// is already mounted, WaitForAttach does not wait, because the kubelet calls it again after a
// restart.
func (a *attacher) WaitForAttach(spec *volume.Spec, devicePath string, _ *corev1.Pod, timeout time.Duration) (string, error) {
	dir, err := a.GetDeviceMountPath(spec)
	if err != nil {
		return "", err
	}
	if complete, err := flexvolume.MountComplete(dir, a.marker(dir)); err != nil {
		return "", err
	} else if complete {
		return mountedDevice(devicePath, dir), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return "", err
	}
	vol, err := a.volume(spec)
	if err != nil {
		return "", err
	}
	path, err := driver.WaitForAttach(ctx, devicePath, vol)
	if errors.Is(err, flexvolume.ErrNotSupported) {
		return devicePath, nil
	}
	return path, a.plugin.explain(err)
}

// VolumesAreAttached reports which volumes are attached to the node. If the driver fails for a
// volume, that volume is considered attached. The result is nil if the driver does not support this
// operation. VolumesAreAttached returns an error only if the driver fails for all volumes.
func (a *attacher) VolumesAreAttached(specs []*volume.Spec, node types.NodeName) (map[*volume.Spec]bool, error) {
	driver, err := a.plugin.inUse()
	if err != nil {
		return nil, err
	}
	attached := map[*volume.Spec]bool{}
	var errs []error
	for _, spec := range specs {
		attached[spec] = true
		vol, err := a.volume(spec)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		result, err := driver.IsAttached(context.Background(), vol, string(node))
		switch {
		case errors.Is(err, flexvolume.ErrNotSupported):
			return nil, nil
		case err != nil:
			errs = append(errs, err)
		case !result:
			// Upstream drops the attachment without calling Detach, so remove the record here.
			if err := a.forget(spec, node); err != nil {
				errs = append(errs, err)
				continue
			}
			attached[spec] = false
		}
	}
	if len(errs) == len(specs) {
		return nil, errors.Join(errs...)
	}
	return attached, nil
}

// forget removes the record of an attachment that the driver does not have.
func (d device) forget(spec *volume.Spec, node types.NodeName) error {
	name, err := d.plugin.GetVolumeName(spec)
	if err != nil {
		return err
	}
	return d.plugin.attachments.remove(d.plugin.attachment(name, node))
}

// Detach detaches the volume from the node. volumeName is the name that GetVolumeName returned.
func (d *detacher) Detach(volumeName string, node types.NodeName) error {
	driver, err := d.plugin.inUse()
	if err != nil {
		return err
	}
	c := call{attachment: d.plugin.attachment(volumeName, node), timeout: driver.Timeout(flexvolume.OpDetach)}
	err = d.plugin.attachments.detach(c, func(ctx context.Context) error { return driver.Detach(ctx, volumeName, string(node)) })
	if errors.Is(err, flexvolume.ErrNotSupported) {
		return nil
	}
	if errors.Is(err, flexvolume.ErrGone) {
		return fmt.Errorf("%w; install it again to detach volume %q from node %q", err, volumeName, node)
	}
	return d.plugin.explain(err)
}
