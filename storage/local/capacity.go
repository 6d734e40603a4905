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

// Reserve is a part of a disk that is kept free.
type Reserve struct {
	// Bytes is a fixed part.
	Bytes int64
	// Share is a part of the disk's size, from 0 to 1.
	Share float64
}

func (r Reserve) of(size int64) int64 { return r.Bytes + int64(r.Share*float64(size)) }

// available is what may still be promised, in bytes; it is negative when more was promised than there is now, because the disk was filled by somebody
// else. Whoever promises something after it holds d.promising.
//
// What the driver has for volumes is what its images take and what is free, less the reserve. A volume is promised its size, a snapshot what it
// has allocated: it never grows, but what it shares with its volume today it will have alone when the volume has been written over.
func (d *Driver) available() (int64, error) {
	disk, err := filesystem.Measure(d.volumes.dir)
	if err != nil {
		return 0, err
	}
	var images []string
	var damaged []error // of which nothing is known
	promised := int64(0)
	for file, v := range d.volumes.all(&damaged) {
		if v.isCache() { // a cache is promised nothing, and what it takes is not for volumes
			continue
		}
		images = append(images, d.volumes.image(file))
		promised += v.Size
	}
	for file := range d.snapshots.all(&damaged) {
		allocated, err := image.Allocated(d.snapshots.image(file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is being made
			return 0, err
		}
		images = append(images, d.snapshots.image(file))
		promised += allocated
	}
	taken, err := image.Taken(images, d.shares)
	if err != nil {
		return 0, err
	}
	budget := disk.AvailableBytes + taken - d.Reserve.of(disk.Bytes)
	return int64(math.Floor(float64(budget)*cmp.Or(d.Overcommit, 1))) - promised, nil
}

// promise tells whether size bytes more may be promised.
func (d *Driver) promise(size int64) error {
	available, err := d.available()
	if err != nil {
		return err
	}
	if size > available {
		return status.Errorf(codes.ResourceExhausted, "%d bytes are wanted and %d left for volumes on node %q, after its reserve and what was promised to other volumes",
			size, max(available, 0), d.Node)
	}
	return nil
}

// GetCapacity answers what one more volume can have.
func (d *Driver) GetCapacity(_ context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	t := request.GetAccessibleTopology()
	if t != nil && t.GetSegments()[TopologyKey] != topologyValue(d.Node) {
		return &csi.GetCapacityResponse{}, nil
	}
	if caps := request.GetVolumeCapabilities(); len(caps) > 0 {
		if _, err := contentOf(caps); err != nil {
			return &csi.GetCapacityResponse{}, nil // there is none for such volumes
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
