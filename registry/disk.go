package registry

import (
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reserve is the disk space that pushes leave free, for etcd and other data of the host on the same
// disk.
type Reserve struct {
	// Bytes is the minimum in bytes.
	Bytes int64
	// Share is the minimum as a share of the size of the disk, between 0 and 1.
	Share float64
}

// inodeReserve is the share of inodes that pushes leave free: small blobs use up inodes before
// bytes.
const inodeReserve = 0.05

// check fails if the free space of a directory's disk is at or below the reserve.
func (r Reserve) check(dir string) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("measure the disk of the registry, %q: %w", dir, err)
	}
	free, size := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	if reserve := r.Bytes + int64(r.Share*float64(size)); free < reserve {
		return &refusal{full: true, message: fmt.Sprintf("%s; it has %s, and slipway.registry.reserve keeps %s for the host", fullMessage, readable(free), readable(reserve))}
	}
	if disk.Files > 0 && float64(disk.Ffree) < inodeReserve*float64(disk.Files) {
		return &refusal{full: true, message: fmt.Sprintf("%s; it has %d inodes of %d", fullMessage, disk.Ffree, disk.Files)}
	}
	return nil
}

// readable formats bytes with a suitable unit.
func readable(bytes int64) string {
	const unit = 1 << 20
	if bytes > unit {
		bytes -= bytes % unit
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
