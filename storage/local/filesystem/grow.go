package filesystem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants from the kernel headers ext4.h and xfs_fs.h that package unix does not define.
const (
	ext4ResizeFS  = 0x40086610
	xfsGeometryV1 = 0x80705864
	xfsGrowData   = 0x4010586E
)

// xfsGeometry is struct xfs_fsop_geom_v1.
type xfsGeometry struct {
	BlockSize, _, _, _, _, _, _, MaxInodePercent uint32
	DataBlocks                                   uint64
	_                                            [9]uint64
}

// xfsGrowth is struct xfs_growfs_data.
type xfsGrowth struct {
	Blocks          uint64
	MaxInodePercent uint32
	_               uint32
}

// ErrMounted is returned if this process can expand the file system only while it is not mounted.
var ErrMounted = errors.New("expanding a mounted ext4 file system requires the capability CAP_SYS_RESOURCE, which this process does not have")

// Grow expands the mounted file system at dir to the size of its device. It needs no external
// program. It is a no-op if the file system already has this size. It returns ErrMounted if this
// process does not have the required capability.
func Grow(t Type, dir string, device *os.File) error {
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("grow file system: read size of %s: %w", device.Name(), err)
	}
	dirFile, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("grow file system: %w", err)
	}
	defer dirFile.Close()
	switch t {
	case Ext4:
		err = growExt4(dirFile, device, size)
	case XFS:
		err = growXFS(dirFile, size)
	default:
		err = fmt.Errorf("it is not one of %v", Types())
	}
	if err != nil {
		return fmt.Errorf("grow %s file system at %q to %d bytes: %w", t, dir, size, err)
	}
	return nil
}

func growExt4(dirFile, device *os.File, size int64) error {
	current, blocks, err := ext4Blocks(device, size)
	if err != nil || blocks <= current {
		return err
	}
	err = ioctl(dirFile, ext4ResizeFS, unsafe.Pointer(&blocks))
	if errors.Is(err, unix.EPERM) {
		return ErrMounted
	}
	return err
}

// ext4Blocks returns the number of blocks in an ext4 file system, and the number of blocks that fit
// on its device.
func ext4Blocks(device *os.File, size int64) (current, capacity uint64, err error) {
	super := make([]byte, 1024)
	if _, err := device.ReadAt(super, ext4Superblock); err != nil {
		return 0, 0, fmt.Errorf("read superblock: %w", err)
	}
	current = uint64(binary.LittleEndian.Uint32(super[0x4:]))
	const wide = 0x80 // the 64bit feature flag
	if binary.LittleEndian.Uint32(super[0x60:])&wide != 0 {
		current |= uint64(binary.LittleEndian.Uint32(super[0x150:])) << 32
	}
	return current, uint64(size) >> (10 + binary.LittleEndian.Uint32(super[0x18:])), nil
}

// GrowImage expands the unmounted file system in the image at path to the image's size. It is a
// no-op for xfs, which can be expanded only while it is mounted. If the process is killed, the
// image might need manual repair, so the caller must run GrowImage on a copy.
func GrowImage(ctx context.Context, t Type, path string) error {
	if t != Ext4 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("grow file system: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("grow file system: %w", err)
	}
	current, capacity, err := ext4Blocks(f, size)
	if err != nil {
		return fmt.Errorf("grow ext4 file system in %q: %w", path, err)
	}
	if capacity <= current {
		return nil
	}
	if err := checkExt4(ctx, path, "-f"); err != nil { // resize2fs requires a full check
		return err
	}
	if _, err := run(ctx, "resize2fs", path); err != nil {
		return fmt.Errorf("grow ext4 file system in %q: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("grow ext4 file system: %w", err)
	}
	return nil
}

func growXFS(dirFile *os.File, size int64) error {
	var geometry xfsGeometry
	if err := ioctl(dirFile, xfsGeometryV1, unsafe.Pointer(&geometry)); err != nil {
		return fmt.Errorf("read geometry: %w", err)
	}
	growth := xfsGrowth{Blocks: uint64(size) / uint64(geometry.BlockSize), MaxInodePercent: geometry.MaxInodePercent}
	if growth.Blocks <= geometry.DataBlocks {
		return nil
	}
	return ioctl(dirFile, xfsGrowData, unsafe.Pointer(&growth))
}

func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
