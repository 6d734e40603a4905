package local

import (
	"context"
	"errors"
	"io/fs"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
)

// CreateVolume creates an empty volume, or a volume from a snapshot or another volume.
func (d *Driver) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	vol, err := d.volumeFromRequest(request)
	if err != nil {
		return nil, err
	}
	source, err := d.resolveSource(&vol)
	if err != nil {
		return nil, err
	}
	size, err := sizeIn(request.GetCapacityRange(), max(source.size, vol.Filesystem.MinSize()))
	if err != nil {
		return nil, err
	}
	vol.Size = size
	file := fileName(vol.Name)
	release, err := d.locks.acquire(append(source.keys, d.handle(file))...)
	if err != nil {
		return nil, err
	}
	defer release()
	existing, err := d.volumes.load(file)
	switch {
	case err == nil && existing.State == stateReady:
		if err := checkSame(existing, vol, request.GetCapacityRange()); err != nil {
			return nil, err
		}
		return &csi.CreateVolumeResponse{Volume: d.csiVolume(file, existing)}, nil
	case err == nil:
		err = d.removeVolume(file) // an earlier attempt was interrupted
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = d.create(ctx, file, vol, source)
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: d.csiVolume(file, vol)}, nil
}

// volumeFromRequest returns the requested volume's record, without its size.
func (d *Driver) volumeFromRequest(request *csi.CreateVolumeRequest) (v volume, err error) {
	if request.GetName() == "" {
		return v, status.Error(codes.InvalidArgument, "the name is missing")
	}
	v = volume{Name: request.GetName(), State: stateReady}
	if v.Filesystem, err = contentOf(request.GetVolumeCapabilities()); err != nil {
		return v, err
	}
	if v.Allocation, err = parseParameters(request.GetParameters(), request.GetMutableParameters()); err != nil {
		return v, err
	}
	if source := request.GetVolumeContentSource(); source != nil {
		v.Snapshot, v.Volume = source.GetSnapshot().GetSnapshotId(), source.GetVolume().GetVolumeId()
		if v.Snapshot == "" && v.Volume == "" {
			return v, status.Error(codes.InvalidArgument, "the content source is neither a snapshot nor a volume")
		}
	}
	return v, d.accessible(request.GetAccessibilityRequirements())
}

// accessible checks that the topology requirement includes this node.
func (d *Driver) accessible(r *csi.TopologyRequirement) error {
	for _, t := range r.GetRequisite() {
		if t.GetSegments()[TopologyKey] == topologyValue(d.Node) {
			return nil
		}
	}
	if len(r.GetRequisite()) == 0 {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "the topology requirement excludes node %q, and this driver creates volumes only on this node", d.Node)
}

// contentSource is the source of a new volume's content.
type contentSource struct {
	keys  []string // locks to hold while the source is read
	size  int64
	image string // empty for an empty volume
	file  string // file of the cloned volume
}

// resolveSource returns a volume's content source and checks the source's file system.
func (d *Driver) resolveSource(v *volume) (source contentSource, err error) {
	var content filesystem.Type
	switch {
	case v.Snapshot != "":
		file, s, err := d.snapshot(v.Snapshot)
		if err != nil {
			return source, err
		}
		source, content = contentSource{keys: []string{snapshotKey(file)}, size: s.Size, image: d.snapshots.image(file)}, s.Filesystem
	case v.Volume != "":
		file, s, err := d.volume(v.Volume)
		if err != nil {
			return source, err
		}
		source, content = contentSource{keys: []string{v.Volume}, size: s.Size, image: d.volumes.image(file), file: file}, s.Filesystem
	default:
		return source, nil
	}
	if content == "" && v.Filesystem != "" { // a pod might have created a file system
		if content, err = filesystem.Detect(source.image); err != nil {
			return source, err
		}
	}
	if v.Filesystem != "" && v.Filesystem != content {
		return source, status.Errorf(codes.InvalidArgument, "the source is %s, which cannot become %s", describeContent(content), describeContent(v.Filesystem))
	}
	return source, nil
}

// checkSame checks that an existing volume matches a repeated request.
func checkSame(existing, vol volume, r *csi.CapacityRange) error {
	size := existing.Size
	// Ignore the size and the allocation, because they can be changed after the volume is created.
	existing.Size, vol.Size, vol.Allocation = 0, 0, existing.Allocation
	if existing != vol || !within(size, r) {
		return status.Errorf(codes.AlreadyExists, "volume %q exists with different properties: %s of %d bytes", existing.Name, describeContent(existing.Filesystem), size)
	}
	return nil
}

// create creates the volume. If the creation fails, create removes the volume. If the removal also
// fails, the next attempt or the next startup removes the volume.
func (d *Driver) create(ctx context.Context, file string, v volume, source contentSource) error {
	v.State = stateCreating
	if err := d.reserveVolume(file, v); err != nil {
		return err
	}
	err := d.createImage(ctx, file, v, source)
	if err == nil && v.Allocation == thick {
		err = image.Allocate(d.volumes.image(file))
	}
	if err == nil {
		v.State = stateReady
		err = d.volumes.save(file, v)
	}
	if err != nil {
		return errors.Join(err, d.removeVolume(file))
	}
	return nil
}

// reserveVolume writes a new volume's record if the capacity is available.
func (d *Driver) reserveVolume(file string, v volume) error {
	d.capacityMu.Lock()
	defer d.capacityMu.Unlock()
	if err := d.checkCapacity(v.Size); err != nil {
		return err
	}
	return d.volumes.save(file, v)
}

// createImage creates a volume's image.
func (d *Driver) createImage(ctx context.Context, file string, v volume, source contentSource) error {
	path := d.volumes.image(file)
	if source.image == "" {
		if err := image.Create(path, v.Size); err != nil || v.Filesystem == "" {
			return err
		}
		return filesystem.Make(ctx, v.Filesystem, path)
	}
	copyImage := func() error {
		_, err := image.Copy(ctx, path, source.image)
		return err
	}
	var err error
	if source.file != "" {
		err = d.withQuiesced(source.file, copyImage)
	} else {
		err = copyImage()
	}
	if err != nil {
		return err
	}
	if err := image.Grow(path, v.Size); err != nil {
		return err
	}
	return filesystem.GrowImage(ctx, v.Filesystem, path) // an xfs grows when it is mounted
}

// csiVolume converts a record to a CSI volume.
func (d *Driver) csiVolume(file string, v volume) *csi.Volume {
	vol := &csi.Volume{VolumeId: d.handle(file), CapacityBytes: v.Size, AccessibleTopology: d.topology()}
	if v.Snapshot != "" {
		vol.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Snapshot},
		}}
	}
	if v.Volume != "" {
		vol.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Volume},
		}}
	}
	return vol
}

func (d *Driver) topology() []*csi.Topology {
	return []*csi.Topology{{Segments: map[string]string{TopologyKey: topologyValue(d.Node)}}}
}
