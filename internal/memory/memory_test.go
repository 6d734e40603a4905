//go:build linux

package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProgramRunsAfterRelease(t *testing.T) {
	before := mappedPages(t)
	if before == 0 {
		t.Fatal("no page of the program is mapped")
	}
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := mappedPages(t); after >= before {
		t.Errorf("%d kB of the program are mapped, previously %d kB", after, before)
	}
}

func TestOnlyReadOnlyMappingsAreReleased(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-0052d000 r-xp 00000000 fe:00 11 /usr/bin/slipway":           true,
		"0052d000-00700000 r--p 0012d000 fe:00 11 /usr/bin/slipway":           true,
		"00700000-00720000 rw-p 00300000 fe:00 11 /usr/bin/slipway":           false,
		"00400000-0052d000 r-xp 00000000 fe:00 11 /usr/lib/libc.so":           false,
		"00400000-0052d000 r-xp 00000000 fe:00 11 /usr/bin/slipway (deleted)": false,
		"7ffc0000-7ffc1000 r-xp 00000000 00:00 0 [vdso]":                      false,
		"c000000000-c000400000 rw-p 00000000 00:00 0":                         false,
	} {
		if _, _, got := readOnly(line, "/usr/bin/slipway"); got != want {
			t.Errorf("%q is released: %t", line, got)
		}
	}
}

// The loader of a position-independent program changes pages that become read-only later.
func TestPagesChangedByLoaderAreNotReleased(t *testing.T) {
	page := os.Getpagesize()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, make([]byte, 2*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	changed, err := unix.Mmap(int(f.Fd()), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(changed)
	changed[0] = 7
	if err := unix.Mprotect(changed, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := releaseMappings(file); err != nil {
		t.Fatal(err)
	}
	if changed[0] != 7 {
		t.Error("a page that was changed before it became read-only was released")
	}
}

// mappedPages returns the size of the process's mapped file pages, in kB.
func mappedPages(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kB := 0
	for _, digit := range strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]) {
		kB = kB*10 + int(digit-'0')
	}
	return kB
}
