package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lock acquires the lock that makes this process the only supervisor of a data directory, until the
// file is closed or the process exits. The lock file is in the run directory, which Lock creates.
func Lock(dataDir, runDir string) (*os.File, error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := allowTraversal(dataDir, runDir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(runDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("another slipway runs with the data directory %q; see: slipway status", dataDir)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	return file, nil
}

// allowTraversal allows other users to enter the directories above the containers' root file
// systems. Other users include the root user of a pod with its own user namespace. The modes of the
// files below these directories still apply.
func allowTraversal(dirs ...string) error {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o111)
		}
		if err != nil {
			return fmt.Errorf("allow containers to access their directories: %w", err)
		}
	}
	return nil
}
