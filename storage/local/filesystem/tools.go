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

// packages are the distribution's packages (Debian's names) that have the programs.
func packages(program string) string {
	if program == "mkfs.xfs" {
		return "xfsprogs"
	}
	return "e2fsprogs"
}

// MissingError says that a program of the distribution is not there.
type MissingError struct{ Program, Package string }

// Error names the package to install.
func (e *MissingError) Error() string {
	return fmt.Sprintf("program %s not found: install the package %s", e.Program, e.Package)
}

// Make makes a file system on the device or image at path. What was there is lost. Blocks that need not be written are left holes.
func Make(ctx context.Context, t Type, path string) error {
	var err error
	switch t {
	case Ext4:
		// No blocks are kept for root, since volumes hold no system. An error makes it read-only, which the volume's health tells.
		_, err = run(ctx, "mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-e", "remount-ro", "-E", "lazy_journal_init=1", path)
	case XFS:
		// Sectors of 4 KiB suit a device of either size.
		_, err = run(ctx, "mkfs.xfs", "-q", "-f", "-s", "size=4096", path)
	default:
		err = fmt.Errorf("volumes have the file systems %v", Types())
	}
	if err != nil {
		return fmt.Errorf("make %s file system on %q: %w", t, path, err)
	}
	return nil
}

// Check repairs what can be repaired without loss on an unmounted device; the error of one that needs a person has the report. An xfs does
// this when it is mounted.
func Check(ctx context.Context, t Type, device string) error {
	if t != Ext4 {
		return nil
	}
	return checkExt4(ctx, device)
}

func checkExt4(ctx context.Context, device string, options ...string) error {
	if err := awaitUnused(ctx, device); err != nil {
		return err
	}
	code, err := run(ctx, "e2fsck", append(options, "-p", device)...)
	const repaired = 1 | 2 // e2fsck(8): errors corrected; system should be rebooted, which is about a mounted root
	if err != nil && code&^repaired != 0 {
		return fmt.Errorf("check ext4 file system on %s: %w", device, err)
	}
	return nil
}

// unusedWithin is how long a device may stay in use after its last unmount.
const unusedWithin = 10 * time.Second

// awaitUnused waits until no mount uses a device. A container that starts has the mounts of the host in its own namespace until it lets go of them, which
// keeps a device in use for an instant after it was unmounted here.
func awaitUnused(ctx context.Context, device string) error {
	ctx, cancel := context.WithTimeout(ctx, unusedWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		file, err := os.OpenFile(device, os.O_RDONLY|unix.O_EXCL, 0) // refused for a device that is mounted anywhere
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

// run runs a program, which ends with this process; the error has what it printed. The code is that of its exit, or -1.
func run(ctx context.Context, program string, args ...string) (code int, err error) {
	path, err := find(program)
	if err != nil {
		return -1, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var output []byte
	// The signal comes when the thread ends that started the program.
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

// find looks where programs of the administrator are too, which are not in every search path.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		path := dir + "/" + program
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &MissingError{Program: program, Package: packages(program)}
}
