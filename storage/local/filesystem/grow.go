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

// What the kernel's headers ext4.h and xfs_fs.h have and package unix has not.
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

// ErrMounted says that a file system can be made larger only where it is not mounted.
var ErrMounted = errors.New("growing a mounted ext4 file system needs the capability CAP_SYS_RESOURCE, which this process does not have")

// Grow makes the file system that is mounted at dir as large as its device, while it is used. It needs no program. Nothing happens if it
// is as large already. The error is ErrMounted if this process must not do this.
func Grow(t Type, dir string, device *os.File) error {
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("grow file system: size of %s: %w", device.Name(), err)
	}
	mounted, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("grow file system: %w", err)
	}
	defer mounted.Close()
	switch t {
	case Ext4:
		err = growExt4(mounted, device, size)
	case XFS:
		err = growXFS(mounted, size)
	default:
		err = fmt.Errorf("it is neither of %v", Types())
	}
	if err != nil {
		return fmt.Errorf("grow %s file system at %q to %d bytes: %w", t, dir, size, err)
	}
	return nil
}

func growExt4(mounted, device *os.File, size int64) error {
	have, blocks, err := ext4Blocks(device, size)
	if err != nil || blocks <= have {
		return err
	}
	err = ioctl(mounted, ext4ResizeFS, unsafe.Pointer(&blocks))
	if errors.Is(err, unix.EPERM) {
		return ErrMounted
	}
	return err
}

// ext4Blocks tells how many blocks an ext4 has, and how many its device has room for.
func ext4Blocks(device *os.File, size int64) (have, room uint64, err error) {
	super := make([]byte, 1024)
	if _, err := device.ReadAt(super, ext4Superblock); err != nil {
		return 0, 0, fmt.Errorf("read superblock: %w", err)
	}
	have = uint64(binary.LittleEndian.Uint32(super[0x4:]))
	const wide = 0x80 // the feature 64bit
	if binary.LittleEndian.Uint32(super[0x60:])&wide != 0 {
		have |= uint64(binary.LittleEndian.Uint32(super[0x150:])) << 32
	}
	return have, uint64(size) >> (10 + binary.LittleEndian.Uint32(super[0x18:])), nil
}

// GrowImage makes the file system in the image at path, which is not mounted, as large as the image. An xfs grows only where it is mounted, so
// nothing happens to it. A process that is killed meanwhile leaves an image that needs a person: work on a copy that can be made again.
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
	have, room, err := ext4Blocks(f, size)
	if err != nil {
		return fmt.Errorf("grow ext4 file system in %q: %w", path, err)
	}
	if room <= have {
		return nil
	}
	if err := checkExt4(ctx, path, "-f"); err != nil { // resize2fs wants this
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

func growXFS(mounted *os.File, size int64) error {
	var geometry xfsGeometry
	if err := ioctl(mounted, xfsGeometryV1, unsafe.Pointer(&geometry)); err != nil {
		return fmt.Errorf("read geometry: %w", err)
	}
	growth := xfsGrowth{Blocks: uint64(size) / uint64(geometry.BlockSize), MaxInodePercent: geometry.MaxInodePercent}
	if growth.Blocks <= geometry.DataBlocks {
		return nil
	}
	return ioctl(mounted, xfsGrowData, unsafe.Pointer(&growth))
}

func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
