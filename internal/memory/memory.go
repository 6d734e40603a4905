//go:build linux

// Package memory gives back to the machine what only the start of a process needed.
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

	"golang.org/x/sys/unix"
)

// settle is how long a process goes on allocating after it became ready: informers fill, caches build.
const settle = 10 * time.Second

// ReleaseAfterStart waits until the process has settled, or ctx ends, and then returns to the machine
// what its running does not need: heap that the start has used, which Go would keep for minutes, and
// the program's own code and constants that only initialization read. Those are clean pages of a file: what is
// needed after all is mapped again from the page cache.
func ReleaseAfterStart(ctx context.Context) error {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil
	}
	debug.FreeOSMemory()
	return releaseProgram()
}

// releaseProgram unmaps the pages of this program's read-only segments.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	return releaseMappings(program)
}

// releaseMappings unmaps the pages of a file's read-only mappings in this process.
func releaseMappings(program string) error {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read own mappings: %w", err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	var start, end uintptr
	var candidate bool
	for lines.Scan() {
		field, value, isField := strings.Cut(lines.Text(), ": ")
		if !isField {
			start, end, candidate = readOnly(lines.Text(), program)
			continue
		}
		// A page that was changed before the mapping was made read-only, as the loader of a program that can be moved does, is in no file.
		if !candidate || field != "Anonymous" || strings.TrimSpace(value) != "0 kB" {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release mapping %x-%x: %w", start, end, errno)
		}
	}
	return lines.Err()
}

// readOnly gives the addresses of a mapping's line in /proc/<pid>/smaps if it is a mapping of the program that
// cannot be written: one that can may hold changes that are nowhere else.
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
