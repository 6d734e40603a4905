// Package diskspace checks the free space on disks that users fill and that the platform needs.
package diskspace

import (
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reserve is the amount of disk space that must stay free.
type Reserve struct {
	// Bytes is the minimum free space in bytes, in addition to Share.
	Bytes int64
	// Share is the minimum free space as a fraction of the disk's size, from 0 to 1.
	Share float64
	// Inodes is the minimum number of free inodes as a fraction of the disk's inodes, from 0 to 1.
	// This limit is necessary because small files use up inodes before bytes.
	Inodes float64
}

// Full is the error for a disk whose free space is below its reserve.
type Full struct {
	// Free and Reserve are in bytes, or in inodes if Unit is "inodes".
	Free, Reserve int64
	Unit          string
}

// Error describes the free space and the reserve.
func (f *Full) Error() string {
	if f.Unit != "" {
		return fmt.Sprintf("it has %d free %s, less than its reserve of %d", f.Free, f.Unit, f.Reserve)
	}
	return fmt.Sprintf("it has %s free, less than its reserve of %s", Readable(f.Free), Readable(f.Reserve))
}

// Check returns an error of type *Full if the free space on a directory's disk is below the
// reserve.
func (r Reserve) Check(dir string) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("read free space of %q: %w", dir, err)
	}
	free, size := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	if reserve := r.Bytes + int64(r.Share*float64(size)); free < reserve {
		return &Full{Free: free, Reserve: reserve}
	}
	if reserve := int64(r.Inodes * float64(disk.Files)); int64(disk.Ffree) < reserve {
		return &Full{Free: int64(disk.Ffree), Reserve: reserve, Unit: "inodes"}
	}
	return nil
}

// Readable formats a number of bytes with a suitable unit.
func Readable(bytes int64) string {
	const unit = 1 << 20
	if bytes > unit {
		bytes -= bytes % unit
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
