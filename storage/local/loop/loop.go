// Package loop attaches files as block devices through the kernel's loop driver, without
// losetup(8). It requires root and Linux 5.8.
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

// maxAttempts limits the attempts to attach a file. An attempt fails if another process takes the
// free device that the kernel returned.
const maxAttempts = 100

// Device is a loop device that is attached to a file.
type Device struct {
	// Path is the device's path, such as /dev/loop3.
	Path string
	// Image is the path that the file had when it was attached.
	Image string
	// Deleted is set if the file has been deleted.
	Deleted bool
}

// Attach attaches the image file as a block device and returns the open device. The device bypasses
// the file's page cache if the file system supports this. With autoClear, the kernel detaches the
// device when its last user, such as the returned file or a mount, closes it. A process that is
// killed after attaching but before mounting therefore leaves no device attached. The caller must
// not attach a file twice.
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
		return nil, fmt.Errorf("%w; load the kernel module loop", err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_DIRECT_IO}}
	if autoClear {
		config.Info.Flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image)
	for range maxAttempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("get free device: %w", err)
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
	return nil, errors.New("other processes took every free device")
}

// Open opens the device that is attached to the image file. It returns nil if there is no such
// device. A device with autoClear remains attached while the returned file is open.
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
		// The device might have been detached and attached to another file before it was opened.
		if current, err := Find(image); err == nil && current == path {
			return device, nil
		}
		device.Close()
	}
}

// Find returns the path of the device that is attached to the image file, or "" if there is no such
// device.
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

// List returns the devices whose files are in dir. dir must not contain symbolic links.
func List(dir string) ([]Device, error) {
	return list(func(image string) bool { return filepath.Dir(image) == dir })
}

// ListBelow returns the devices whose files are in dir or in a directory below it. dir must not
// contain symbolic links.
func ListBelow(dir string) ([]Device, error) {
	return list(func(image string) bool { return strings.HasPrefix(image, dir+"/") })
}

// list returns the devices whose files match.
func list(match func(image string) bool) ([]Device, error) {
	entries, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list loop devices: %w", err)
	}
	var devices []Device
	for _, entry := range entries {
		content, err := os.ReadFile(entry)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EIO) {
			continue // detached in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("list loop devices: %w", err)
		}
		image, deleted := strings.CutSuffix(strings.TrimSuffix(string(content), "\n"), " (deleted)")
		if match(image) {
			name := filepath.Base(filepath.Dir(filepath.Dir(entry)))
			devices = append(devices, Device{Path: "/dev/" + name, Image: image, Deleted: deleted})
		}
	}
	return devices, nil
}

// Detach detaches a device. If the device is in use, the kernel detaches the device when the last
// user closes it. If the device is not attached, Detach is a no-op.
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

// Refresh sets the device's size to the size of its file.
func Refresh(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("refresh size of %s: %w", device.Name(), err)
	}
	return nil
}
