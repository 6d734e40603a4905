// Package backup writes a host's files to an archive and restores them. An archive is a compressed
// tar file that contains the following entries, in this order:
//
//	backup.json  the Manifest
//	data/...     files below the data directory
//	files/...    other files, by their absolute paths
//
// The archive preserves the owners, modes and times of files, directories and symbolic links.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Names and name prefixes of archive entries.
const (
	manifestName  = "backup.json"
	dataPrefix    = "data/"
	filesPrefix   = "files/"
	formatVersion = 1
)

// Manifest describes an archive.
type Manifest struct {
	// Format is the version of the archive format.
	Format int `json:"format"`
	// Slipway is the version of Slipway that wrote the archive. Node is the name of the host's
	// node.
	Slipway string    `json:"slipway"`
	Node    string    `json:"node"`
	Created time.Time `json:"created"`
	// Snapshot is the path of the etcd snapshot, relative to the data directory. It is empty for a
	// host without etcd.
	Snapshot string `json:"snapshot,omitempty"`
}

// Write writes files and directories to a new archive with mode 0600. It omits sources that do not
// exist. replaced maps a file's path to the path of the file that provides its content, such as a
// snapshot.
func Write(path string, manifest Manifest, dataDir string, sources []string, replaced map[string]string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("write backup: %q already exists", path)
	}
	temporary := path + ".partial"
	defer os.Remove(temporary)
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	defer file.Close()
	compressed := gzip.NewWriter(file)
	w := &writer{Writer: tar.NewWriter(compressed), dataDir: dataDir, written: map[string]bool{}}
	manifest.Format = formatVersion
	if err := w.all(manifest, sources, replaced); err != nil {
		return fmt.Errorf("write backup %q: %w", path, err)
	}
	if err := errors.Join(w.Close(), compressed.Close(), file.Chmod(0o600), file.Sync(), os.Rename(temporary, path)); err != nil {
		return fmt.Errorf("write backup %q: %w", path, err)
	}
	return atomicfile.SyncFolder(filepath.Dir(path))
}

// writer writes the entries of an archive.
type writer struct {
	*tar.Writer
	dataDir string
	written map[string]bool
}

func (w *writer) all(manifest Manifest, sources []string, replaced map[string]string) error {
	content, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Mode: 0o600, Size: int64(len(content)), ModTime: manifest.Created}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	for _, source := range sources {
		if err := w.tree(source); err != nil {
			return err
		}
	}
	for path, content := range replaced {
		if err := w.entry(path, content); err != nil {
			return err
		}
	}
	return nil
}

// tree writes a file, or a directory and all files below it.
func (w *writer) tree(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = w.entry(path, path)
		}
		if errors.Is(err, fs.ErrNotExist) { // the file was removed in the meantime, or never existed
			return nil
		}
		return err
	})
}

// entry writes a file, directory or link with the entry name for path. source is the file that
// provides the content and attributes.
func (w *writer) entry(path, source string) error {
	info, err := os.Lstat(source)
	if err != nil || w.written[path] {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(source); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil // skip sockets
	}
	w.written[path] = true
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = w.name(path)
	if !info.Mode().IsRegular() {
		return w.WriteHeader(header)
	}
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	// Logs and other files can grow while they are read. The archive contains only the bytes that
	// existed when the file's header was written.
	_, err = io.Copy(w, io.LimitReader(file, header.Size))
	return err
}

// name returns the entry name for a path.
func (w *writer) name(path string) string {
	relative, err := filepath.Rel(w.dataDir, path)
	if err == nil && filepath.IsLocal(relative) {
		return dataPrefix + filepath.ToSlash(relative)
	}
	return filesPrefix + strings.TrimPrefix(filepath.ToSlash(path), "/")
}
