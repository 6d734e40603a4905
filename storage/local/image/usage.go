package image

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Usage is what files take of their disk.
type Usage struct {
	// Allocated is what the file takes in bytes, counting what it shares with others too.
	Allocated int64
	// Own is what would be free again without the file: what it shares with no other.
	Own int64
}

// Measure tells what the file at path takes. Only where files can share blocks need shares be true; it makes measuring slower.
func Measure(path string, shares bool) (Usage, error) {
	f, err := os.Open(path)
	if err != nil {
		return Usage{}, fmt.Errorf("measure image: %w", err)
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return Usage{}, fmt.Errorf("measure image %q: %w", path, err)
	}
	usage := Usage{Allocated: stat.Blocks * 512, Own: stat.Blocks * 512}
	if shares {
		shared, err := sharedBytes(f)
		if err != nil {
			return Usage{}, fmt.Errorf("measure image %q: %w", path, err)
		}
		usage.Own = max(0, usage.Own-shared)
	}
	return usage, nil
}

// What the kernel's header linux/fiemap.h has and package unix has not.
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

// sharedBytes adds up the extents that the file shares with others.
func sharedBytes(f *os.File) (int64, error) {
	var shared uint64
	for start := uint64(0); ; {
		request := fiemap{Start: start, Length: ^uint64(0) - start, ExtentCount: fiemapExtents}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fsIocFiemap, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return 0, fmt.Errorf("map extents: %w", errno)
		}
		if request.Mapped == 0 {
			return int64(shared), nil
		}
		for _, extent := range request.Extents[:request.Mapped] {
			if extent.Flags&fiemapExtentShared != 0 {
				shared += extent.Length
			}
			start = extent.Logical + extent.Length
			if extent.Flags&fiemapExtentLast != 0 {
				return int64(shared), nil
			}
		}
	}
}
