package pki

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskIsReportedAndDamagesNothing issues certificates on file systems that become full at
// different points.
func TestFullDiskIsReportedAndDamagesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatalf("mount %s: %v; this test needs root", dir, err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	spec := specIn(dir)
	for _, size := range []string{"16k", "60k", "100k", "140k"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
		_, err := Ensure(spec)
		if err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), dir) {
			t.Errorf("Ensure with %s: got error %v, want ENOSPC and a path", size, err)
		}
		for _, l := range leavesOf(spec) {
			if _, err := os.Stat(l.files.Cert); err == nil {
				verify(t, l)
			}
		}
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=2m"); err != nil {
		t.Fatal(err)
	}
	ensure(t, spec)
	for _, l := range leavesOf(spec) {
		verify(t, l)
	}
}
