// Package usermode runs tests in user-mode Linux, a kernel that runs as an ordinary process. The
// kernel in Debian's user-mode-linux package supports file systems, network protocols and quotas
// that a test machine's kernel might not support. The test binary is the kernel's init process. It
// can read the host's files but cannot change them.
package usermode

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Environment variables of the test binary in user-mode Linux.
const (
	testVariable      = "SLIPWAY_USERMODE_TEST"
	directoryVariable = "SLIPWAY_USERMODE_DIRECTORY"
	modulesVariable   = "SLIPWAY_USERMODE_MODULES"
)

// passed is the last line that a test prints if it passes.
const passed = "usermode: passed"

// Inside reports whether the process runs in user-mode Linux.
func Inside() bool { return os.Getenv(testVariable) != "" }

// Main runs a package's tests. Call it from TestMain.
func Main(m *testing.M) {
	if !Inside() {
		os.Exit(m.Run())
	}
	if err := boot(); err != nil {
		fmt.Println("usermode:", err)
	} else if os.Args = []string{os.Args[0], "-test.v", "-test.run=^" + os.Getenv(testVariable) + "$"}; m.Run() == 0 {
		fmt.Println(passed)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("usermode: power off:", err)
	}
	os.Exit(1)
}

// In reports whether the test already runs in its own kernel. If it does not, In runs the test in a
// kernel with the given modules.
func In(t *testing.T, modules ...string) bool {
	t.Helper()
	if Inside() {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir() // directory for the kernel's own files, such as its PID file
	kernel := exec.CommandContext(t.Context(), "linux.uml", "rootfstype=hostfs", "rootflags=/", "ro", "mem=768M", "quiet",
		"con=null", "con0=null,fd:1", "uml_dir="+own, "init="+program,
		testVariable+"="+t.Name(), directoryVariable+"="+directory, modulesVariable+"="+strings.Join(modules, ","))
	kernel.Dir = own
	output, err := kernel.CombinedOutput()
	text := strings.ReplaceAll(string(output), "\r", "")
	if !strings.Contains(text, "\n"+passed+"\n") {
		t.Fatalf("linux.uml: %v\n%s", err, text)
	}
	t.Log(text)
	return false
}

// boot prepares the kernel: file systems, the loopback device and modules.
func boot() error {
	for _, mount := range [][3]string{ // file system, directory, options
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run", "size=2g"}, {"tmpfs", "/mnt"}, {"tmpfs", "/var/lib/nfs"},
	} {
		if err := unix.Mount(mount[0], mount[1], mount[0], 0, mount[2]); err != nil {
			return fmt.Errorf("mount %q: %w", mount[1], err)
		}
	}
	for name, value := range map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/run/tmp", "HOME": "/run"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, directory := range []string{"/run/tmp", "/run/modules/lib"} {
		if err := os.MkdirAll(directory, 0o777); err != nil {
			return err
		}
	}
	if err := os.Symlink("/usr/lib/uml/modules", "/run/modules/lib/modules"); err != nil {
		return err
	}
	if err := os.Chdir(os.Getenv(directoryVariable)); err != nil {
		return err
	}
	commands := [][]string{{"ip", "link", "set", "lo", "up"}}
	for module := range strings.FieldsSeq(strings.ReplaceAll(os.Getenv(modulesVariable), ",", " ")) {
		commands = append(commands, []string{"modprobe", "-d", "/run/modules", module})
	}
	for _, command := range commands {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("run %q: %w: %s", command, err, output)
		}
	}
	return nil
}
