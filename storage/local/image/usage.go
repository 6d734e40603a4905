package image

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Allocated returns the disk space allocated to the file at path, in bytes, including blocks that
// the file shares with other files.
func Allocated(path string) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0, fmt.Errorf("measure image: %w", &os.PathError{Op: "stat", Path: path, Err: err})
	}
	return stat.Blocks * 512, nil
}

// DiskUsage returns the disk space used by files, in bytes. It counts shared blocks once, and
// treats missing files as empty. shares must be true if files can share blocks; the call is then
// slower, because it compares the files' extents.
func DiskUsage(paths []string, shares bool) (int64, error) {
	total := int64(0)
	var shared []extent
	for _, path := range paths {
		allocated, err := Allocated(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total += allocated
		if !shares {
			continue
		}
		extents, err := sharedExtents(path)
		if err != nil {
			return 0, fmt.Errorf("measure image %q: %w", path, err)
		}
		for _, e := range extents {
			total -= e.end - e.start
		}
		shared = append(shared, extents...)
	}
	return total + union(shared), nil
}

// extent is a byte range on the disk.
type extent struct{ start, end int64 }

// union returns the number of bytes that are in at least one of the extents.
func union(extents []extent) (length int64) {
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	end := int64(0)
	for _, e := range extents {
		length += max(0, e.end-max(e.start, end))
		end = max(end, e.end)
	}
	return length
}

// Constants from the kernel header linux/fiemap.h that package unix does not define.
const (
	fsIocFiemap        = 0xC020660B
	fiemapExtentLast   = 0x1
	fiemapExtentShared = 0x2000
	fiemapExtents      = 256
)

type fiemapExtent struct {
	Logical, Physical, Length uint64
	_                         [2]uint64
	Flags                     uint32
	_                         [3]uint32
}

type fiemap struct {
	Start, Length                    uint64
	Flags, Mapped, ExtentCount, Fill uint32
	Extents                          [fiemapExtents]fiemapExtent
}

// sharedExtents returns the extents that the file shares with other files.
func sharedExtents(path string) (shared []extent, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for start := uint64(0); ; {
		request := fiemap{Start: start, Length: ^uint64(0) - start, ExtentCount: fiemapExtents}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fsIocFiemap, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return nil, fmt.Errorf("map extents: %w", errno)
		}
		if request.Mapped == 0 {
			return shared, nil
		}
		for _, e := range request.Extents[:request.Mapped] {
			if e.Flags&fiemapExtentShared != 0 {
				shared = append(shared, extent{int64(e.Physical), int64(e.Physical + e.Length)})
			}
			start = e.Logical + e.Length
			if e.Flags&fiemapExtentLast != 0 {
				return shared, nil
			}
		}
	}
}
