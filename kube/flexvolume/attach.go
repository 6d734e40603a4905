package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// attacher attaches volumes, in the controller, and waits for them and mounts them, on the node.
type attacher struct{ device }

// detacher undoes that.
type detacher struct{ device }

// device is what both know.
type device struct{ plugin *plugin }

// volume is a spec as the engine takes it. The volume's own name tells apart inline volumes of different pods that are called alike.
func (d device) volume(spec *volume.Spec) (engine.Volume, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return engine.Volume{}, err
	}
	wanted := source.volume(spec.Name())
	if spec.PersistentVolume == nil {
		if wanted.ID, err = d.plugin.GetVolumeName(spec); err != nil {
			return engine.Volume{}, err
		}
	}
	return wanted, nil
}

// Attach attaches the volume to the node and returns the device there, or "" where it is not known yet. A driver without the
// operation has nothing to do.
func (a *attacher) Attach(spec *volume.Spec, node types.NodeName) (string, error) {
	ctx := context.Background()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return "", err
	}
	wanted, err := a.volume(spec)
	if err != nil {
		return "", err
	}
	name, err := a.plugin.GetVolumeName(spec)
	if err != nil {
		return "", err
	}
	if err := a.plugin.attachments.add(a.plugin.attachment(name, node)); err != nil {
		return "", err
	}
	path, err := driver.Attach(ctx, wanted, string(node))
	if errors.Is(err, engine.ErrNotSupported) {
		return "", nil
	}
	return path, err
}

// WaitForAttach waits on the node for the volume's device. Without the operation, the device that Attach returned is taken. A device that is
// mounted already is there: kubelet asks again after its restart.
func (a *attacher) WaitForAttach(spec *volume.Spec, devicePath string, _ *v1.Pod, timeout time.Duration) (string, error) {
	dir, err := a.GetDeviceMountPath(spec)
	if err != nil {
		return "", err
	}
	if done, err := engine.MountComplete(dir, a.marker(dir)); err != nil {
		return "", err
	} else if done {
		return mountedDevice(devicePath, dir), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	driver, err := a.plugin.ready(ctx)
	if err != nil {
		return "", err
	}
	wanted, err := a.volume(spec)
	if err != nil {
		return "", err
	}
	path, err := driver.WaitForAttach(ctx, devicePath, wanted)
	if errors.Is(err, engine.ErrNotSupported) {
		return devicePath, nil
	}
	return path, err
}

// VolumesAreAttached says which volumes are still attached to the node. One that the driver cannot tell of counts as attached; nil
// means that it lacks the operation. There is an error only if no volume could be asked for.
func (a *attacher) VolumesAreAttached(specs []*volume.Spec, node types.NodeName) (map[*volume.Spec]bool, error) {
	driver, err := a.plugin.inUse()
	if err != nil {
		return nil, err
	}
	attached := map[*volume.Spec]bool{}
	var problems []error
	for _, spec := range specs {
		attached[spec] = true
		wanted, err := a.volume(spec)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		is, err := driver.IsAttached(context.Background(), wanted, string(node))
		switch {
		case errors.Is(err, engine.ErrNotSupported):
			return nil, nil
		case err != nil:
			problems = append(problems, err)
		default:
			attached[spec] = is
		}
	}
	if len(problems) == len(specs) {
		return nil, errors.Join(problems...)
	}
	return attached, nil
}

// Detach takes the volume of that name, from GetVolumeName, away from the node.
func (d *detacher) Detach(volumeName string, node types.NodeName) error {
	driver, err := d.plugin.inUse()
	if err != nil {
		return err
	}
	err = driver.Detach(context.Background(), volumeName, string(node))
	if err == nil || errors.Is(err, engine.ErrNotSupported) {
		return d.plugin.attachments.remove(d.plugin.attachment(volumeName, node))
	}
	if errors.Is(err, engine.ErrGone) {
		return fmt.Errorf("%w; install it again to detach volume %q from node %q", err, volumeName, node)
	}
	return err
}
