package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
)

// Reserve is the part of a disk that is kept free: the sum of Bytes and Fraction.
type Reserve struct {
	// Bytes is an absolute size, in bytes.
	Bytes int64
	// Fraction is a fraction of the disk's size, between 0 and 1.
	Fraction float64
}

func (r Reserve) bytes(size int64) int64 { return r.Bytes + int64(r.Fraction*float64(size)) }

// available returns the uncommitted capacity, in bytes. The result is negative if other users of
// the disk have filled it, so that less space remains than is committed. A caller that commits
// capacity must hold d.capacityMu.
//
// The driver's capacity is the space occupied by its images plus the free space, minus the reserve.
// A volume commits its size. A snapshot commits its allocated size: a snapshot never grows, but
// when its volume is overwritten, the blocks that they shared belong to the snapshot alone. Until
// its image is complete, a snapshot commits the size that it will have.
func (d *Driver) available() (int64, error) {
	disk, err := filesystem.Measure(d.volumes.dir)
	if err != nil {
		return 0, err
	}
	var images []string
	var errs []error // errors of unreadable records, which are ignored
	committed := int64(0)
	for file, v := range d.volumes.all(&errs) {
		if v.isCache() { // caches do not count, although they take space from volumes
			continue
		}
		images = append(images, d.volumes.image(file))
		committed += v.Size
	}
	for file, s := range d.snapshots.all(&errs) {
		allocated, err := image.Allocated(d.snapshots.image(file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the image might not exist yet
			return 0, err
		}
		images = append(images, d.snapshots.image(file))
		committed += max(allocated, s.Reserved)
	}
	usage, err := image.DiskUsage(images, d.sharesBlocks)
	if err != nil {
		return 0, err
	}
	budget := disk.AvailableBytes + usage - d.Reserve.bytes(disk.Bytes)
	return int64(math.Floor(float64(budget)*cmp.Or(d.Overcommit, 1))) - committed, nil
}

// checkCapacity returns an error unless size more bytes of capacity can be committed.
func (d *Driver) checkCapacity(size int64) error {
	available, err := d.available()
	if err != nil {
		return err
	}
	if size > available {
		return status.Errorf(codes.ResourceExhausted, "%d bytes are requested, but only %d are available for volumes on node %q, after subtracting its reserve and the capacity committed to other volumes",
			size, max(available, 0), d.Node)
	}
	return nil
}

// GetCapacity returns the capacity that is available for a new volume.
func (d *Driver) GetCapacity(_ context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	t := request.GetAccessibleTopology()
	if t != nil && t.GetSegments()[TopologyKey] != topologyValue(d.Node) {
		return &csi.GetCapacityResponse{}, nil
	}
	if caps := request.GetVolumeCapabilities(); len(caps) > 0 {
		if _, err := contentOf(caps); err != nil {
			return &csi.GetCapacityResponse{}, nil // no capacity for unsupported volumes
		}
	}
	if _, err := parseParameters(request.GetParameters(), nil); err != nil {
		return nil, err
	}
	available, err := d.available()
	if err != nil {
		return nil, err
	}
	available = max(available, 0) / granularity * granularity
	return &csi.GetCapacityResponse{
		AvailableCapacity: available,
		MaximumVolumeSize: wrapperspb.Int64(available),
		MinimumVolumeSize: wrapperspb.Int64(filesystem.Ext4.MinSize()),
	}, nil
}
