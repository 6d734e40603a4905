//go:build linux

// Package memory releases memory that a process needed only during startup.
package memory

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// settleDelay is how long a process continues to allocate memory after it has become ready, while
// its informers and caches fill.
const settleDelay = 10 * time.Second

// ReleaseAfterStart waits until the process has started up, or until ctx is done. Then it returns
// unneeded memory to the machine: heap that was used during startup, which Go would keep for
// minutes, and code and constants that were read only during initialization. Code and constants are
// clean file pages, which the kernel maps again from the page cache on demand.
func ReleaseAfterStart(ctx context.Context) error {
	select {
	case <-time.After(settleDelay):
	case <-ctx.Done():
		return nil
	}
	debug.FreeOSMemory()
	return releaseProgram()
}

// ReleaseProgram is like ReleaseAfterStart for another process that has become ready, but releases
// only the pages of its program, also from the page cache. On a kernel older than 5.10, it has no
// effect.
func ReleaseProgram(ctx context.Context, pid int) error {
	select {
	case <-time.After(settleDelay):
		return releaseProgramOf(pid)
	case <-ctx.Done():
		return nil
	}
}

// releaseProgramOf releases the pages of another process's read-only program segments.
func releaseProgramOf(pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	dir := fmt.Sprintf("/proc/%d", pid)
	program, err := os.Readlink(dir + "/exe")
	if err != nil {
		return fmt.Errorf("find program of process %d: %w", pid, err)
	}
	candidates, err := mappings(dir, program)
	if err != nil {
		return err
	}
	for _, m := range candidates {
		_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(process), uintptr(unsafe.Pointer(&m)), 1, unix.MADV_PAGEOUT, 0, 0)
		switch errno {
		case 0:
		case unix.ENOSYS:
			return nil
		default:
			return fmt.Errorf("release mapping %x of process %d: %w", m.start, pid, errno)
		}
	}
	return nil
}

// releaseProgram unmaps the pages of the program's read-only segments.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return releaseMappings(program)
}

// releaseMappings unmaps the pages of this process's read-only mappings of a file.
func releaseMappings(program string) error {
	candidates, err := mappings("/proc/self", program)
	if err != nil {
		return err
	}
	for _, m := range candidates {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.size, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release mapping %x: %w", m.start, errno)
		}
	}
	return nil
}

// mapping is a range of a process's addresses, in the form of the kernel's iovec.
type mapping struct{ start, size uintptr }

// mappings returns a process's read-only mappings of a file that contain no changed pages. dir is
// the process's directory in /proc.
func mappings(dir, program string) ([]mapping, error) {
	maps, err := os.Open(dir + "/smaps")
	if err != nil {
		return nil, fmt.Errorf("read mappings: %w", err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	var unchanged []mapping
	var start, end uintptr
	var candidate bool
	for lines.Scan() {
		field, value, isField := strings.Cut(lines.Text(), ": ")
		if !isField {
			start, end, candidate = readOnly(lines.Text(), program)
			continue
		}
		// Keep a mapping with changed pages, because these pages are not in any file. The loader of
		// a position-independent program changes pages before their mapping becomes read-only.
		if candidate && field == "Anonymous" && strings.TrimSpace(value) == "0 kB" {
			unchanged = append(unchanged, mapping{start, end - start})
		}
	}
	return unchanged, lines.Err()
}

// readOnly parses a mapping's line in /proc/<pid>/smaps. ok is true for the program's read-only
// mappings. A writable mapping can contain changes that are not in the file.
func readOnly(line, program string) (start, end uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || strings.Contains(fields[1], "w") || strings.Join(fields[5:], " ") != program {
		return 0, 0, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err := strconv.ParseUint(high, 16, 64)
	return uintptr(first), uintptr(last), err == nil
}
