package filesystem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// What the kernel's header linux/fs.h has and package unix has not.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// Frozen runs f while the file system mounted at dir is whole on its device and whoever writes there waits. It is thawed whatever f returns.
// A process that is killed meanwhile leaves it frozen: Thaw must be called at the next start.
func Frozen(dir string, f func() error) error {
	mounted, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("freeze file system: %w", err)
	}
	defer mounted.Close()
	if err := unix.IoctlSetInt(int(mounted.Fd()), fiFreeze, 0); err != nil {
		return fmt.Errorf("freeze file system at %q: %w", dir, err)
	}
	err = f()
	return errors.Join(err, thaw(mounted))
}

// Thaw lets the writers of the file system mounted at dir go on, if a process was killed that had frozen it.
func Thaw(dir string) error {
	mounted, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("thaw file system: %w", err)
	}
	defer mounted.Close()
	return thaw(mounted)
}

// thaw succeeds where nothing is frozen.
func thaw(mounted *os.File) error {
	if err := unix.IoctlSetInt(int(mounted.Fd()), fiThaw, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("thaw file system at %q: %w", mounted.Name(), err)
	}
	return nil
}
