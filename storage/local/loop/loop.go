// Package loop attaches files as block devices through the kernel's loop driver, without losetup(8). It needs root and Linux 5.8.
package loop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// attempts bounds how often another process may take the free device that the kernel has just named.
const attempts = 100

// Device is a loop device with a file behind it.
type Device struct {
	// Path is that of the device, such as /dev/loop3.
	Path string
	// Image is the path of the file, as it was when it was attached.
	Image string
	// Deleted says that the file has no name any more.
	Deleted bool
}

// Attach makes a block device of the file image, and returns it opened; its path is its name. The page cache of the file is passed by where
// its file system allows that. With autoClear the device ends with its last user, be it the returned file or a mount: a process that is
// killed between attaching and mounting leaves nothing behind. The caller sees to it that no file is attached twice.
func Attach(image string, autoClear bool) (*os.File, error) {
	device, err := attach(image, autoClear)
	if err != nil {
		return nil, fmt.Errorf("attach %q as a loop device: %w", image, err)
	}
	return device, nil
}

func attach(image string, autoClear bool) (*os.File, error) {
	back, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w (the kernel needs its module loop)", err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_DIRECT_IO}}
	if autoClear {
		config.Info.Flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image)
	for range attempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("ask for a free device: %w", err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("configure %s: %w", device.Name(), err)
		}
	}
	return nil, errors.New("every free device was taken by somebody else")
}

// Open opens the device that the file image is attached as, or returns nil if it is attached nowhere. A device that ends by itself
// stays while the returned file is open.
func Open(image string) (*os.File, error) {
	for {
		path, err := Find(image)
		if err != nil || path == "" {
			return nil, err
		}
		device, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open device of %q: %w", image, err)
		}
		// It may have ended, and begun anew with another file, before it was open.
		if found, err := Find(image); err == nil && found == path {
			return device, nil
		}
		device.Close()
	}
}

// Find returns the path of the device that the file image is attached as, or "".
func Find(image string) (string, error) {
	devices, err := List(filepath.Dir(image))
	if err != nil {
		return "", err
	}
	for _, device := range devices {
		if device.Image == image && !device.Deleted {
			return device.Path, nil
		}
	}
	return "", nil
}

// List returns the devices whose files lie in a folder. The folder's path has no symbolic links.
func List(folder string) ([]Device, error) {
	entries, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list loop devices: %w", err)
	}
	var devices []Device
	for _, entry := range entries {
		content, err := os.ReadFile(entry)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EIO) {
			continue // detached while it was looked at
		}
		if err != nil {
			return nil, fmt.Errorf("list loop devices: %w", err)
		}
		image, deleted := strings.CutSuffix(strings.TrimSuffix(string(content), "\n"), " (deleted)")
		if filepath.Dir(image) == folder {
			name := filepath.Base(filepath.Dir(filepath.Dir(entry)))
			devices = append(devices, Device{Path: "/dev/" + name, Image: image, Deleted: deleted})
		}
	}
	return devices, nil
}

// Detach ends a device; one that is in use ends with its last user. Nothing happens where none is attached.
func Detach(path string) error {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("detach %s: %w", path, err)
	}
	defer device.Close()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", path, err)
	}
	return nil
}

// Refresh gives the device the size that its file has now.
func Refresh(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("refresh size of %s: %w", device.Name(), err)
	}
	return nil
}
