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

// driverFile is the result of scanning one driver's directory.
type driverFile struct {
	path string
	id   fileID
	// version is the executable's SHA-256. It is computed only if id has changed since the last
	// scan.
	version string
	// err is the reason why the executable is unusable. missing is set if the file does not exist.
	err     error
	missing bool
}

// fileID changes whenever the content of a file might have changed.
type fileID struct {
	dev, ino, size uint64
	mtime, ctime   unix.Timespec
}

// scan reads the plugin directory, and creates it if it does not exist. It watches each directory
// before it reads the directory, so that it misses no change between two scans.
func (w *watch) scan(dir string) (map[string]*driverFile, error) {
	w.last, w.watchErr = time.Now(), nil
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create FlexVolume plugin directory: %w", err)
	}
	w.dropStale()
	seen := map[string]bool{dir: true}
	w.tryAdd(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read FlexVolume plugin directory: %w", err)
	}
	files := map[string]*driverFile{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		// Use Stat instead of e.IsDir to follow links to driver directories.
		if info, err := os.Stat(path); strings.HasPrefix(e.Name(), ".") || err != nil || !info.IsDir() {
			continue
		}
		seen[path] = true
		w.tryAdd(path)
		files[UnescapeName(e.Name())] = examine(dir, e.Name())
	}
	w.removeExcept(seen)
	return files, nil
}

// examine checks the executable in a single driver's directory.
func examine(pluginDir, directory string) *driverFile {
	if err := checkName(directory); err != nil {
		return &driverFile{err: err}
	}
	name := UnescapeName(directory)
	if err := CheckName(name); err != nil {
		return &driverFile{err: fmt.Errorf("%w; rename the directory %s", err, directory)}
	}
	path := executable(pluginDir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &driverFile{missing: true, err: fmt.Errorf("find executable of FlexVolume driver %q: %s does not exist; "+
			"the executable must have the name of the driver", name, path)}
	case err != nil:
		return &driverFile{err: fmt.Errorf("find executable of FlexVolume driver %q: %w", name, err)}
	case !info.Mode().IsRegular():
		return &driverFile{err: fmt.Errorf("find executable of FlexVolume driver %q: %s is not a regular file", name, path)}
	case info.Mode()&0o111 == 0:
		return &driverFile{err: fmt.Errorf("find executable of FlexVolume driver %q: %s is not executable; run chmod +x %[2]s", name, path)}
	}
	if err := checkOwner(path); err != nil {
		return &driverFile{err: fmt.Errorf("use executable of FlexVolume driver %q: %w", name, err)}
	}
	stat := info.Sys().(*syscall.Stat_t)
	return &driverFile{path: path, id: fileID{
		dev: stat.Dev, ino: stat.Ino, size: uint64(stat.Size),
		mtime: unix.Timespec(stat.Mtim), ctime: unix.Timespec(stat.Ctim),
	}}
}

// hashFile returns the SHA-256 of a file, in hexadecimal.
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
