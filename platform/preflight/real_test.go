package preflight

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests in this file use the machine on which they run, or one of its real resources.

// TestThisMachinePassesPreflight checks a host's requirements, except for programs, which a
// developer's machine might not have.
func TestThisMachinePassesPreflight(t *testing.T) {
	want := Requirements{NodeName: "host1", Directories: []Directory{{Path: t.TempDir(), Free: 1, Programs: true}}, Memory: 1}
	if problems := Run(t.Context(), want, ThisMachine()); Failed(problems) {
		t.Errorf("found %v", problems)
	}
}

func TestFeatureChecksLeaveNothingBehind(t *testing.T) {
	dir := t.TempDir()
	for _, feature := range []Feature{Overlay, Namespaces, Bridge, Veth, NFTables} {
		if err := try(t.Context(), feature, dir); err != nil {
			t.Errorf("%s: %v", feature, err)
		}
	}
	if remaining, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(remaining) > 0 {
		t.Errorf("left behind: %v, error %v", remaining, err)
	}
	if _, err := net.InterfaceByName("preflight0"); err == nil {
		t.Error("a device was left behind")
	}
}

func TestUnknownFeatureIsRejected(t *testing.T) {
	if err := try(t.Context(), "warp drive", t.TempDir()); err == nil {
		t.Error("no error for an unknown feature")
	}
}

func TestOverlayOnOverlayIsReported(t *testing.T) {
	dir := t.TempDir()
	merged := mountOverlay(t, dir)
	machine := ThisMachine()
	problems := checkKernel(t.Context(), Requirements{Directories: []Directory{{Path: filepath.Join(merged, "data")}}}, machine)
	expect(t, problems, "overlay file system", "cannot be on the overlay file system of "+merged)
}

func TestBusyPortNamesItsProcess(t *testing.T) {
	self := fmt.Sprintf("process %d (", os.Getpid())
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		t.Run("tcp "+address, func(t *testing.T) {
			listener, err := net.Listen("tcp", address)
			must(t, err)
			defer listener.Close()
			expect(t, checkBusy(t, "tcp", listener.Addr().String()), "port", "for test is used by "+self)
		})
		t.Run("udp "+address, func(t *testing.T) {
			conn, err := net.ListenPacket("udp", address)
			must(t, err)
			defer conn.Close()
			expect(t, checkBusy(t, "udp", conn.LocalAddr().String()), "port", "for test is used by "+self)
		})
	}
	t.Run("a port of one address is in use, but no problem is reported for all addresses", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		port := netip.MustParseAddrPort(listener.Addr().String()).Port()
		expect(t, checkBusy(t, "tcp", fmt.Sprintf("0.0.0.0:%d", port)), fmt.Sprintf("port %d", port), self)
	})
}

func checkBusy(t *testing.T, network, address string) []Problem {
	t.Helper()
	port := Port{Use: "test", Network: network, Address: netip.MustParseAddrPort(address), Setting: "a", File: "b"}
	problems := checkPorts(t.Context(), Requirements{Ports: []Port{port}}, ThisMachine())
	if len(problems) == 1 && !strings.HasPrefix(problems[0].Remedy, fmt.Sprintf("kill %d\n", os.Getpid())) && !strings.HasPrefix(problems[0].Remedy, "systemctl stop ") {
		t.Errorf("remedy %q does not stop the process", problems[0].Remedy)
	}
	return problems
}

func TestRemedyForBusyPortOfServiceIsSystemctl(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "123")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "comm"), []byte("nginx\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/system.slice/nginx.service\n"), 0o600))
	owner := Machine{}.process(dir)
	if owner.String() != "process 123 (nginx)" || owner.stop() != "systemctl stop nginx.service" {
		t.Errorf("owner %s: the remedy is %q", owner, owner.stop())
	}
}

func TestProgramsAreFoundInPath(t *testing.T) {
	machine := ThisMachine()
	machine.Path = t.TempDir()
	expect(t, checkPrograms(t.Context(), Requirements{Programs: []Program{{"mount", "mount"}}}, machine), "program mount", "is not installed")
	machine.Path += ":/usr/bin:/bin"
	if problems := checkPrograms(t.Context(), Requirements{Programs: []Program{{"mount", "mount"}}}, machine); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
}

func TestFullDiskIsReported(t *testing.T) {
	dir := mountTmpfs(t, 0, "size=1m")
	fill(t, filepath.Join(dir, "filler"))
	expect(t, checkOn(t, dir, 0), "directory "+dir, "is on a disk that is full")
}

func TestSmallDiskIsReported(t *testing.T) {
	dir := mountTmpfs(t, 0, "size=3m")
	expect(t, checkOn(t, filepath.Join(dir, "not", "yet", "there"), 2e9), "directory "+dir, "has 3 MB free on its disk, 2000 MB are needed")
}

func TestFewInodesAreReported(t *testing.T) {
	dir := mountTmpfs(t, 0, "nr_inodes=50")
	expect(t, checkOn(t, dir, 1), "directory "+dir, "more files (inodes)")
}

func TestReadOnlyDiskIsReported(t *testing.T) {
	dir := mountTmpfs(t, unix.MS_RDONLY, "nr_inodes=0")
	problems := checkOn(t, dir, 1)
	expect(t, problems, "directory "+dir, "is mounted read-only")
	if want := "mount -o remount,rw " + dir + "\n"; !strings.HasPrefix(problems[0].Remedy, want) {
		t.Errorf("remedy %q, want %q", problems[0].Remedy, want)
	}
}

func TestNoexecDiskIsReported(t *testing.T) {
	dir := mountTmpfs(t, unix.MS_NOEXEC, "nr_inodes=0")
	expect(t, checkOn(t, filepath.Join(dir, "data"), 1), "directory "+dir, "mounted with noexec")
}

func checkOn(t *testing.T, path string, free uint64) []Problem {
	t.Helper()
	want := Requirements{Directories: []Directory{{Path: path, Free: free, Programs: true}}}
	return checkDirectories(t.Context(), want, ThisMachine())
}

// expect fails the test unless there is exactly one problem with the given subject and text.
func expect(t *testing.T, problems []Problem, subject, text string) {
	t.Helper()
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Subject, subject) || !strings.Contains(problems[0].Text, text) {
		t.Errorf("found %v, want %q: %q", problems, subject, text)
	}
}

func mountTmpfs(t *testing.T, flags uintptr, options string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", flags, options))
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	return dir
}

func mountOverlay(t *testing.T, dir string) string {
	t.Helper()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	must(t, unix.Mount("overlay", merged, "overlay", 0, options))
	t.Cleanup(func() { must(t, unix.Unmount(merged, 0)) })
	return merged
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	if err := exec.Command("dd", "if=/dev/zero", "of="+path, "bs=4096").Run(); err == nil {
		t.Fatal("the disk does not become full")
	}
}
