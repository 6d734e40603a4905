package filesystem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Constants from the kernel header linux/fs.h that package unix does not define.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// WithFrozen calls f while the file system mounted at dir is frozen: its content on the device is
// consistent, and writers are blocked. It thaws the file system after f returns. If the process is
// killed, the file system stays frozen, so Thaw must be called at the next startup.
func WithFrozen(dir string, f func() error) error {
	dirFile, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("freeze file system: %w", err)
	}
	defer dirFile.Close()
	if err := unix.IoctlSetInt(int(dirFile.Fd()), fiFreeze, 0); err != nil {
		return fmt.Errorf("freeze file system at %q: %w", dir, err)
	}
	err = f()
	return errors.Join(err, thaw(dirFile))
}

// Thaw thaws the file system mounted at dir after the process that froze it was killed.
func Thaw(dir string) error {
	dirFile, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("thaw file system: %w", err)
	}
	defer dirFile.Close()
	return thaw(dirFile)
}

// thaw thaws a file system. It succeeds if the file system is not frozen.
func thaw(dirFile *os.File) error {
	if err := unix.IoctlSetInt(int(dirFile.Fd()), fiThaw, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("thaw file system at %q: %w", dirFile.Name(), err)
	}
	return nil
}
