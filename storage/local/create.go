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

// CreateVolume makes a volume, empty or with the content of a snapshot or of another volume.
func (d *Driver) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	wanted, err := d.wanted(request)
	if err != nil {
		return nil, err
	}
	from, err := d.source(&wanted)
	if err != nil {
		return nil, err
	}
	size, err := sizeIn(request.GetCapacityRange(), max(from.size, wanted.Filesystem.MinSize()))
	if err != nil {
		return nil, err
	}
	wanted.Size = size
	file := fileName(wanted.Name)
	release, err := d.busy.take(append(from.keys, d.handle(file))...)
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := d.volumes.load(file)
	switch {
	case err == nil && have.State == stateReady:
		if err := same(have, wanted, request.GetCapacityRange()); err != nil {
			return nil, err
		}
		return &csi.CreateVolumeResponse{Volume: d.describeVolume(file, have)}, nil
	case err == nil:
		err = d.removeVolume(file) // what an earlier attempt could not remove
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = d.create(ctx, file, wanted, from)
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: d.describeVolume(file, wanted)}, nil
}

// wanted is the record that a request asks for, without the size.
func (d *Driver) wanted(request *csi.CreateVolumeRequest) (v volume, err error) {
	if request.GetName() == "" {
		return v, status.Error(codes.InvalidArgument, "no name is given")
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
			return v, status.Error(codes.InvalidArgument, "the content's source is neither a snapshot nor a volume")
		}
	}
	return v, d.accessible(request.GetAccessibilityRequirements())
}

// accessible checks that this node is one of those that a volume or snapshot may be on.
func (d *Driver) accessible(r *csi.TopologyRequirement) error {
	for _, t := range r.GetRequisite() {
		if t.GetSegments()[TopologyKey] == topologyValue(d.Node) {
			return nil
		}
	}
	if len(r.GetRequisite()) == 0 {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "it may not be on node %q by its topology, and this driver makes it nowhere else", d.Node)
}

// origin is where the content of a new volume comes from.
type origin struct {
	keys  []string // to be taken while it is read
	size  int64
	image string // "" for an empty volume
	file  string // of the volume that is cloned
}

// source finds the origin of a volume, and what is in it.
func (d *Driver) source(v *volume) (from origin, err error) {
	var content filesystem.Type
	switch {
	case v.Snapshot != "":
		file, s, err := d.snapshot(v.Snapshot)
		if err != nil {
			return from, err
		}
		from, content = origin{keys: []string{snapshotKey(file)}, size: s.Size, image: d.snapshots.image(file)}, s.Filesystem
	case v.Volume != "":
		file, s, err := d.volume(v.Volume)
		if err != nil {
			return from, err
		}
		from, content = origin{keys: []string{v.Volume}, size: s.Size, image: d.volumes.image(file), file: file}, s.Filesystem
	default:
		return from, nil
	}
	if content == "" && v.Filesystem != "" { // somebody else may have made one
		if content, err = filesystem.Detect(from.image); err != nil {
			return from, err
		}
	}
	if v.Filesystem != "" && v.Filesystem != content {
		return from, status.Errorf(codes.InvalidArgument, "the source is %s, which cannot become %s", describe(content), describe(v.Filesystem))
	}
	return from, nil
}

// same checks that a volume is what a repeated request asks for.
func same(have, wanted volume, r *csi.CapacityRange) error {
	size := have.Size
	have.Size, wanted.Size, wanted.Allocation = 0, 0, have.Allocation // both can be changed later
	if have != wanted || !within(size, r) {
		return status.Errorf(codes.AlreadyExists, "volume %q exists and is another: %s of %d bytes", have.Name, describe(have.Filesystem), size)
	}
	return nil
}

// create makes the volume. What a failure leaves is removed, now or at the next attempt or start.
func (d *Driver) create(ctx context.Context, file string, v volume, from origin) error {
	v.State = stateCreating
	if err := d.begin(file, v); err != nil {
		return err
	}
	err := d.fill(ctx, file, v, from)
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

// begin writes the record of a new volume if its size can be promised.
func (d *Driver) begin(file string, v volume) error {
	d.promising.Lock()
	defer d.promising.Unlock()
	if err := d.promise(v.Size); err != nil {
		return err
	}
	return d.volumes.save(file, v)
}

// fill makes the image of a volume.
func (d *Driver) fill(ctx context.Context, file string, v volume, from origin) error {
	path := d.volumes.image(file)
	if from.image == "" {
		if err := image.Create(path, v.Size); err != nil || v.Filesystem == "" {
			return err
		}
		return filesystem.Make(ctx, v.Filesystem, path)
	}
	copied := func() error {
		_, err := image.Copy(ctx, path, from.image)
		return err
	}
	var err error
	if from.file != "" {
		err = d.still(from.file, copied)
	} else {
		err = copied()
	}
	if err != nil {
		return err
	}
	if err := image.Grow(path, v.Size); err != nil {
		return err
	}
	return filesystem.GrowImage(ctx, v.Filesystem, path) // an xfs grows when it is mounted
}

// describeVolume is a volume in the specification's words.
func (d *Driver) describeVolume(file string, v volume) *csi.Volume {
	described := &csi.Volume{VolumeId: d.handle(file), CapacityBytes: v.Size, AccessibleTopology: d.topology()}
	if v.Snapshot != "" {
		described.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Snapshot},
		}}
	}
	if v.Volume != "" {
		described.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Volume},
		}}
	}
	return described
}

func (d *Driver) topology() []*csi.Topology {
	return []*csi.Topology{{Segments: map[string]string{TopologyKey: topologyValue(d.Node)}}}
}
