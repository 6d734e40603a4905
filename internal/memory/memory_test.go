//go:build linux

package memory

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProgramRunsAfterRelease(t *testing.T) {
	before := mappedPages(t, "self")
	if before == 0 {
		t.Fatal("no page of the program is mapped")
	}
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := mappedPages(t, "self"); after >= before {
		t.Errorf("%d kB of the program are mapped, previously %d kB", after, before)
	}
}

// The kernel keeps pages that several processes have mapped, so the other process runs a copy of
// the test binary. The copy is on a disk, because the kernel would also keep the pages of a tmpfs.
func TestOtherProcessRunsAfterRelease(t *testing.T) {
	if os.Getenv("ECHO") != "" {
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return
	}
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp("/var/tmp", "slipway-memory-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	// Pages that are not yet on the disk cannot be released.
	if err := errors.Join(err, file.Chmod(0o700), file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(file.Name(), "-test.run=^"+t.Name()+"$")
	process.Env = append(process.Environ(), "ECHO=1")
	in, inErr := process.StdinPipe()
	out, outErr := process.StdoutPipe()
	if err := errors.Join(inErr, outErr, process.Start()); err != nil {
		t.Fatal(err)
	}
	echo := func() {
		answer := make([]byte, 1)
		if _, err := in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, answer); err != nil || string(answer) != "x" {
			t.Fatalf("the process answers %q: %v", answer, err)
		}
	}
	echo()
	pid := process.Process.Pid
	before := mappedPages(t, strconv.Itoa(pid))
	if err := releaseProgramOf(pid); err != nil {
		t.Fatal(err)
	}
	if after := mappedPages(t, strconv.Itoa(pid)); after > before/2 {
		t.Errorf("%d kB of the program are mapped, previously %d kB", after, before)
	}
	echo()
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	if err := process.Wait(); err != nil {
		t.Error(err)
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

// mappedPages returns the size of a process's mapped file pages, in kB.
func mappedPages(t *testing.T, process string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + process + "/status")
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
