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
	// granularity is the unit for sizes, in bytes. Sizes are rounded up to a multiple of this unit
	// if the requested limit allows it.
	granularity = 1 << 20
	// block is a divisor of all sizes, in bytes: the block size of the file systems and the largest
	// sector size.
	block = 4096
	// defaultSize is the size of a volume if the request does not specify one, in bytes.
	defaultSize = 1 << 30
	// maxSize is the maximum size of a file on ext4, in bytes.
	maxSize = 16<<40 - block
)

// contentOf validates volume capabilities and returns the requested file system type, or "" for a
// raw block volume.
func contentOf(caps []*csi.VolumeCapability) (filesystem.Type, error) {
	if len(caps) == 0 {
		return "", status.Error(codes.InvalidArgument, "the volume capability is missing")
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
			if !t.Supported() {
				return "", status.Errorf(codes.InvalidArgument, "file system %q is not supported; use one of %v", t, filesystem.Types())
			}
			contents[t] = true
		default:
			return "", status.Error(codes.InvalidArgument, "a volume capability requests neither a mounted nor a block volume")
		}
	}
	if len(contents) > 1 {
		return "", status.Error(codes.InvalidArgument, "the capabilities request different types of content for one volume")
	}
	for t := range contents {
		return t, nil
	}
	return "", nil
}

// checkMode returns an error for access modes for multiple nodes.
func checkMode(mode csi.VolumeCapability_AccessMode_Mode) error {
	switch mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return nil
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return status.Error(codes.InvalidArgument, "a volume capability has no access mode")
	}
	return status.Errorf(codes.InvalidArgument, "access mode %s: a local volume is on one node; use ReadWriteOnce or ReadWriteOncePod", mode)
}

// isReadOnly reports whether the access mode is read-only.
func isReadOnly(c *csi.VolumeCapability) bool {
	return c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
}

// sizeIn returns the size of a volume for a capacity range. The size is at least minimum, and at
// least the required number of bytes.
func sizeIn(r *csi.CapacityRange, minimum int64) (int64, error) {
	required, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	if required < 0 || limit < 0 {
		return 0, status.Error(codes.InvalidArgument, "a capacity is negative")
	}
	if limit == 0 {
		limit = math.MaxInt64
	}
	if limit < required {
		return 0, status.Errorf(codes.InvalidArgument, "%d bytes are required but the limit is %d", required, limit)
	}
	limit = min(limit, maxSize)
	minSize := max(required, minimum)
	if required == 0 {
		minSize = max(minimum, min(defaultSize, limit/block*block))
	}
	for _, step := range []int64{granularity, block} {
		if size := roundUp(minSize, step); size <= limit {
			return size, nil
		}
	}
	return 0, status.Errorf(codes.OutOfRange, "no size of at least %d and at most %d bytes is a multiple of %d", minSize, limit, block)
}

func roundUp(n, step int64) int64 {
	if n > math.MaxInt64-step {
		return math.MaxInt64
	}
	return (n + step - 1) / step * step
}

// within reports whether a size is in a capacity range.
func within(size int64, r *csi.CapacityRange) bool {
	return size >= r.GetRequiredBytes() && (r.GetLimitBytes() == 0 || size <= r.GetLimitBytes())
}

// allocation determines when a volume allocates disk space.
type allocation string

const (
	// thin volumes allocate space when data is written, and free it when files are deleted.
	thin allocation = "thin"
	// thick volumes allocate their full size when they are created.
	thick allocation = "thick"
)

// allocationKey is the only parameter of StorageClasses and VolumeAttributesClasses.
const allocationKey = "allocation"

// parseParameters parses the parameters of a StorageClass, and the mutable parameters of a
// VolumeAttributesClass, which take precedence. It ignores Kubernetes' keys.
func parseParameters(parameters, mutable map[string]string) (allocation, error) {
	result := thin
	for _, params := range []map[string]string{parameters, mutable} {
		for _, key := range slices.Sorted(maps.Keys(params)) {
			if strings.HasPrefix(key, "csi.storage.k8s.io/") {
				continue
			}
			if key != allocationKey {
				return "", status.Errorf(codes.InvalidArgument, "parameter %q is unknown: the only parameter is %q", key, allocationKey)
			}
			if result = allocation(params[key]); result != thin && result != thick {
				return "", status.Errorf(codes.InvalidArgument, "parameter %s is %q: it must be %q or %q", key, params[key], thin, thick)
			}
		}
	}
	return result, nil
}

// describeContent returns a description of a volume's content.
func describeContent(t filesystem.Type) string {
	if t == "" {
		return "a raw block volume"
	}
	return fmt.Sprintf("a volume with %s", t)
}
