package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// bootFile, in State, has the identity of the boot that State belongs to.
const bootFile = "boot"

// cleanState empties dir where it belongs to an earlier boot: the process ids, sockets and mounts in it mean nothing any more, or
// worse, something else. A dir of this boot is kept, and with it the running containers. Then dir is marked as belonging to this boot.
func cleanState(dir string) error {
	current, err := bootIdentity("/proc")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, bootFile)
	recorded, err := os.ReadFile(path)
	if err == nil && string(recorded) == current {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read boot of state: %w", err)
	}
	if err := empty(dir); err != nil {
		return fmt.Errorf("remove state of an earlier boot: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(current), 0o600)
}

// empty removes dir with all in it, unless something is mounted there: then it cannot be from an earlier boot,
// and removing would reach into a file system in use.
func empty(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, absolute+"/"), false
	})
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%q is mounted: run slipway down first", mounts[0].Mountpoint)
	}
	return os.RemoveAll(absolute)
}

// bootIdentity identifies the run of the process tree that we are part of: the kernel's boot, and the start time of process 1,
// which tells a restarted container from the one before. proc is where procfs is mounted.
func bootIdentity(proc string) (string, error) {
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("identify boot: %w", err)
	}
	stat, err := os.ReadFile(filepath.Join(proc, "1/stat"))
	if err != nil {
		return "", fmt.Errorf("identify boot: %w", err)
	}
	// The second field is a name in parentheses, which may have blanks; the start time is the 22nd.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndex(string(stat), ")")+1:]), " ")
	fields := strings.Fields(rest)
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return "", fmt.Errorf("identify boot: unknown format of %q", filepath.Join(proc, "1/stat"))
	}
	return strings.TrimSpace(string(boot)) + " " + fields[startTime] + "\n", nil
}
