package local

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
)

// Keys in a volume's context.
const (
	// ephemeralKey is "true" for a volume that is defined in a pod and has the same lifetime as the
	// pod.
	ephemeralKey = "csi.storage.k8s.io/ephemeral"
	// sizeKey is the size of an ephemeral volume as a quantity, such as 100Mi.
	sizeKey = "size"
)

// publishEphemeral creates a volume and mounts it for the pod. A pod that is restarted after a
// reboot finds its existing data.
func (d *Driver) publishEphemeral(ctx context.Context, request *csi.NodePublishVolumeRequest) error {
	handle, target, capability := request.GetVolumeId(), request.GetTargetPath(), request.GetVolumeCapability()
	if request.GetVolumeContext()[CacheKey] != "" {
		return d.publishCache(ctx, request)
	}
	if capability.GetBlock() != nil {
		return status.Error(codes.InvalidArgument, "an ephemeral volume must be mounted; it cannot be a block device")
	}
	content, err := contentOf([]*csi.VolumeCapability{capability})
	if err != nil {
		return err
	}
	file := fileName(handle)
	v, err := d.volumes.load(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && v.State != stateReady {
		v = volume{Name: handle, State: stateReady, Filesystem: content, Target: target}
		if v.Size, v.Allocation, err = ephemeralParameters(request.GetVolumeContext(), content); err != nil {
			return err
		}
		err = d.create(ctx, file, v, contentSource{})
	}
	if err != nil {
		return err
	}
	if v.Target != target {
		return status.Errorf(codes.AlreadyExists, "ephemeral volume %q is published at %q", handle, v.Target)
	}
	if err := d.mount(ctx, file, v, target, capability); err != nil {
		return err
	}
	if request.GetReadonly() {
		return filesystem.SetReadOnly(target)
	}
	return nil
}

// ephemeralParameters parses the volume attributes in a pod.
func ephemeralParameters(attributes map[string]string, content filesystem.Type) (size int64, a allocation, err error) {
	parameters := maps.Clone(attributes)
	text, hasSize := parameters[sizeKey]
	delete(parameters, sizeKey)
	if a, err = parseParameters(parameters, nil); err != nil {
		return 0, "", err
	}
	r := &csi.CapacityRange{}
	if hasSize {
		if r.RequiredBytes, err = parseSize(text); err != nil {
			return 0, "", status.Errorf(codes.InvalidArgument, "volume attribute %s is %q; write a size such as 100Mi", sizeKey, text)
		}
	}
	size, err = sizeIn(r, content.MinSize())
	return size, a, err
}

// unitFactors maps the suffixes of Kubernetes quantities to their factors.
func unitFactors() map[string]int64 {
	return map[string]int64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}
}

// parseSize parses a positive quantity: an integer with an optional suffix, such as 100Mi.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "kKMGTi")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, err
	}
	unit, ok := unitFactors()[text[len(digits):]]
	if !ok || number <= 0 || number > maxSize/unit {
		return 0, strconv.ErrRange
	}
	return number * unit, nil
}

// removeEphemeral removes the volume if it is ephemeral.
func (d *Driver) removeEphemeral(handle string) error {
	if strings.Contains(handle, "/") {
		return nil // the handle comes from CreateVolume
	}
	file := fileName(handle)
	v, err := d.volumes.load(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && v.Target == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return d.removeVolume(file)
}

// podIsGone reports whether the volume is an ephemeral volume of a deleted pod. The kubelet removes
// the directories above the target last.
func (d *Driver) podIsGone(v volume) bool {
	if v.Target == "" {
		return false
	}
	_, err := os.Stat(filepath.Dir(v.Target))
	return errors.Is(err, fs.ErrNotExist)
}
