package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// packageOf returns the name of the distribution package (Debian's name) that contains a program.
func packageOf(program string) string {
	if program == "mkfs.xfs" {
		return "xfsprogs"
	}
	return "e2fsprogs"
}

// MissingProgramError is the error for a required program that is not installed.
type MissingProgramError struct{ Program, Package string }

// Error returns a message that contains the name of the package to install.
func (e *MissingProgramError) Error() string {
	return fmt.Sprintf("program %s not found; install the package %s", e.Program, e.Package)
}

// Make creates a file system on the device or image at path. The previous content is deleted. It
// writes only the necessary blocks, so the rest of an image remains sparse.
func Make(ctx context.Context, t Type, path string) error {
	var err error
	switch t {
	case Ext4:
		// Reserve no blocks for root, because volumes contain no operating system. After an error,
		// the kernel makes the file system read-only, and the volume's health reports this state.
		_, err = run(ctx, "mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-e", "remount-ro", "-E", "lazy_journal_init=1", path)
	case XFS:
		// 4 KiB sectors work on devices with sector sizes of 512 bytes and 4 KiB.
		_, err = run(ctx, "mkfs.xfs", "-q", "-f", "-s", "size=4096", path)
	default:
		err = fmt.Errorf("it is not one of %v", Types())
	}
	if err != nil {
		return fmt.Errorf("create %s file system on %q: %w", t, path, err)
	}
	return nil
}

// Check repairs the file system on an unmounted device as far as possible without data loss. If
// manual repair is necessary, the error contains the report. An xfs file system repairs itself when
// it is mounted.
func Check(ctx context.Context, t Type, device string) error {
	if t != Ext4 {
		return nil
	}
	return checkExt4(ctx, device)
}

func checkExt4(ctx context.Context, device string, options ...string) error {
	if err := waitUnused(ctx, device); err != nil {
		return err
	}
	code, err := run(ctx, "e2fsck", append(options, "-p", device)...)
	// e2fsck(8) sets these bits in its exit code for corrected errors. The bit "system should be
	// rebooted" applies to a mounted root file system.
	const corrected = 1 | 2
	if err != nil && code&^corrected != 0 {
		return fmt.Errorf("check ext4 file system on %s: %w", device, err)
	}
	return nil
}

// unusedTimeout limits how long waitUnused waits after a device's last unmount.
const unusedTimeout = 10 * time.Second

// waitUnused waits until no mount uses a device. A starting container has the host's mounts in its
// own mount namespace until it unmounts them. Therefore, a device stays in use for a short time
// after it was unmounted on the host.
func waitUnused(ctx context.Context, device string) error {
	ctx, cancel := context.WithTimeout(ctx, unusedTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// OpenFile returns an error if the device is mounted in any mount namespace.
		file, err := os.OpenFile(device, os.O_RDONLY|unix.O_EXCL, 0)
		if err == nil {
			return file.Close()
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("check ext4 file system: %w: it is mounted, here or in the mount namespace of another process", err)
		case <-tick.C:
		}
	}
}

// run runs a program, which the kernel kills when this process exits. code is the exit code, or -1
// if the program did not run or was killed. The error contains the program's output.
func run(ctx context.Context, program string, args ...string) (code int, err error) {
	path, err := lookPath(program)
	if err != nil {
		return -1, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var output []byte
	// The kernel sends Pdeathsig when the thread that started the program exits, so thread.Run
	// keeps this thread until the program exits.
	err = thread.Run(func() (err error) {
		output, err = cmd.CombinedOutput()
		return err
	})
	if ctx.Err() != nil {
		return -1, fmt.Errorf("%s: %w", program, context.Cause(ctx))
	}
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return -1, fmt.Errorf("%s: %w", program, err)
		}
		return exit.ExitCode(), fmt.Errorf("%s: %w: %s", program, err, strings.Join(strings.Fields(string(output)), " "))
	}
	return 0, nil
}

// lookPath searches PATH, then the directories for system administration programs, which not every
// PATH contains.
func lookPath(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		path := dir + "/" + program
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &MissingProgramError{Program: program, Package: packageOf(program)}
}
