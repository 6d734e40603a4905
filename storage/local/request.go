package local

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
)

const (
	// granularity is what sizes are rounded up to where the caller's limit allows it, in bytes.
	granularity = 1 << 20
	// block is what every size is a multiple of: a block of a file system, and the largest sector.
	block = 4096
	// defaultSize is the size of a volume for which none is asked.
	defaultSize = 1 << 30
	// maxSize is the size of the largest file of an ext4.
	maxSize = 16<<40 - block
)

// contentOf checks the capabilities that a volume is to have, and returns the file system that they ask for, "" for none: a raw block volume.
func contentOf(caps []*csi.VolumeCapability) (filesystem.Type, error) {
	if len(caps) == 0 {
		return "", status.Error(codes.InvalidArgument, "no volume capability is given")
	}
	contents := map[filesystem.Type]bool{}
	for _, c := range caps {
		if err := checkMode(c.GetAccessMode().GetMode()); err != nil {
			return "", err
		}
		switch {
		case c.GetBlock() != nil:
			contents[""] = true
		case c.GetMount() != nil:
			t := filesystem.Type(c.GetMount().GetFsType())
			if t == "" {
				t = filesystem.Ext4
			}
			if !t.Known() {
				return "", status.Errorf(codes.InvalidArgument, "file system %q: volumes have one of %v", t, filesystem.Types())
			}
			contents[t] = true
		default:
			return "", status.Error(codes.InvalidArgument, "a volume capability asks for neither a mounted nor a block volume")
		}
	}
	if len(contents) > 1 {
		return "", status.Error(codes.InvalidArgument, "the capabilities ask for different contents of one volume")
	}
	for t := range contents {
		return t, nil
	}
	return "", nil
}

// checkMode refuses access from several nodes.
func checkMode(mode csi.VolumeCapability_AccessMode_Mode) error {
	switch mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return nil
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return status.Error(codes.InvalidArgument, "a volume capability has no access mode")
	}
	return status.Errorf(codes.InvalidArgument, "access mode %s: a local volume is on one node; ask for ReadWriteOnce or ReadWriteOncePod", mode)
}

// reads tells whether an access mode allows to read only.
func reads(c *csi.VolumeCapability) bool {
	return c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
}

// sizeIn finds the size of a volume for a capacity range: at least minimum, and at least what is required.
func sizeIn(r *csi.CapacityRange, minimum int64) (int64, error) {
	required, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	if required < 0 || limit < 0 {
		return 0, status.Error(codes.InvalidArgument, "a capacity is negative")
	}
	if limit == 0 {
		limit = math.MaxInt64
	}
	if limit < required {
		return 0, status.Errorf(codes.InvalidArgument, "%d bytes are required where the limit is %d", required, limit)
	}
	limit = min(limit, maxSize)
	wanted := max(required, minimum)
	if required == 0 {
		wanted = max(minimum, min(defaultSize, limit/block*block))
	}
	for _, step := range []int64{granularity, block} {
		if size := roundUp(wanted, step); size <= limit {
			return size, nil
		}
	}
	return 0, status.Errorf(codes.OutOfRange, "no size suits: at least %d bytes, at most %d, a multiple of %d", wanted, limit, block)
}

func roundUp(n, step int64) int64 {
	if n > math.MaxInt64-step {
		return math.MaxInt64
	}
	return (n + step - 1) / step * step
}

// within tells whether a size is in a capacity range.
func within(size int64, r *csi.CapacityRange) bool {
	return size >= r.GetRequiredBytes() && (r.GetLimitBytes() == 0 || size <= r.GetLimitBytes())
}

// allocation says when a volume takes its space from the disk.
type allocation string

const (
	// thin volumes take what is written, and give back what is removed.
	thin allocation = "thin"
	// thick volumes take their size at once.
	thick allocation = "thick"
)

// allocationKey is the only parameter of classes, of volumes as well as of their attributes.
const allocationKey = "allocation"

// parseParameters checks the parameters of a class, over which the mutable ones of a volume attributes class count. Keys of Kubernetes are not looked at.
func parseParameters(parameters, mutable map[string]string) (allocation, error) {
	chosen := thin
	for _, given := range []map[string]string{parameters, mutable} {
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if strings.HasPrefix(key, "csi.storage.k8s.io/") {
				continue
			}
			if key != allocationKey {
				return "", status.Errorf(codes.InvalidArgument, "parameter %q is unknown: there is %q", key, allocationKey)
			}
			if chosen = allocation(given[key]); chosen != thin && chosen != thick {
				return "", status.Errorf(codes.InvalidArgument, "parameter %s is %q: it is %q or %q", key, given[key], thin, thick)
			}
		}
	}
	return chosen, nil
}

// describe names what is in a volume.
func describe(t filesystem.Type) string {
	if t == "" {
		return "a raw block volume"
	}
	return fmt.Sprintf("a volume with %s", t)
}
