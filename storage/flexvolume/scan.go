package flexvolume

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// installed is what a scan found in a driver's directory.
type installed struct {
	path string
	id   fileID
	// version is the executable's SHA-256, computed only where id is not that of the scan before.
	version string
	// err says why there is no executable that can be run; missing, that there is none at all.
	err     error
	missing bool
}

// fileID changes whenever the content of a file may have.
type fileID struct {
	dev, ino, size uint64
	mtime, ctime   unix.Timespec
}

// scan reads the plug-in directory, which is created where it is missing. It watches it and every driver's directory before it looks
// into them, so that no change between two scans goes unseen.
func (w *watch) scan(dir string) (map[string]*installed, error) {
	w.last, w.blind = time.Now(), nil
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create FlexVolume plug-in directory: %w", err)
	}
	w.refresh()
	seen := map[string]bool{dir: true}
	w.follow(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read FlexVolume plug-in directory: %w", err)
	}
	found := map[string]*installed{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		// Stat and not e.IsDir: a link to a driver's directory is followed.
		if info, err := os.Stat(path); strings.HasPrefix(e.Name(), ".") || err != nil || !info.IsDir() {
			continue
		}
		seen[path] = true
		w.follow(path)
		found[UnescapeName(e.Name())] = examine(dir, e.Name())
	}
	w.unfollow(seen)
	return found, nil
}

// examine looks at the executable in one driver's directory.
func examine(pluginDir, directory string) *installed {
	if err := checkName(directory); err != nil {
		return &installed{err: err}
	}
	name := UnescapeName(directory)
	path := executable(pluginDir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &installed{missing: true, err: fmt.Errorf("find executable of FlexVolume driver %q: %s does not exist; "+
			"it must be called like the driver", name, path)}
	case err != nil:
		return &installed{err: fmt.Errorf("find executable of FlexVolume driver %q: %w", name, err)}
	case !info.Mode().IsRegular():
		return &installed{err: fmt.Errorf("find executable of FlexVolume driver %q: %s is not a file", name, path)}
	case info.Mode()&0o111 == 0:
		return &installed{err: fmt.Errorf("find executable of FlexVolume driver %q: %s is not executable; run chmod +x %[2]s", name, path)}
	}
	stat := info.Sys().(*syscall.Stat_t)
	return &installed{path: path, id: fileID{
		dev: stat.Dev, ino: stat.Ino, size: uint64(stat.Size),
		mtime: unix.Timespec(stat.Mtim), ctime: unix.Timespec(stat.Ctim),
	}}
}

// hashFile is the SHA-256 of a file in hexadecimal.
func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read FlexVolume driver: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read FlexVolume driver: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
