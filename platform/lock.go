package platform

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock makes this process the only supervisor of the data directory, until the file is closed or
// the process ends.
func (h *Host) Lock() (*os.File, error) {
	if err := os.MkdirAll(h.RunDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := h.allowTraversal(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(h.RunDir()+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("another slipway runs with the data directory %q; see: slipway status", h.DataDir)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	return file, nil
}

// allowTraversal lets other users enter the directories above the containers' root file systems:
// the root user of a pod with its own user namespace is one of them. The files below have their own
// modes.
func (h *Host) allowTraversal() error {
	for _, dir := range []string{h.DataDir, h.RunDir()} {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o111)
		}
		if err != nil {
			return fmt.Errorf("let containers enter their directories: %w", err)
		}
	}
	return nil
}
