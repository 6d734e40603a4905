package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// markerName is the name of a file that exists in a data directory while a restore is incomplete.
const markerName = "restoring"

// maxCompared is the maximum size, in bytes, of an existing file outside the data directory that a
// restore accepts.
const maxCompared = 1 << 20

// Interrupted reports whether a restore into the data directory has started but is not complete.
func Interrupted(dataDir string) bool {
	_, err := os.Lstat(filepath.Join(dataDir, markerName))
	return err == nil
}

// CheckEmpty returns an error if the host has a cluster or is a member of one. It ignores the
// configuration files that an installation creates.
func CheckEmpty(dataDir string) error {
	if Interrupted(dataDir) {
		return nil
	}
	for _, name := range []string{"pki", "etcd", filepath.Join("node", "membership.json")} {
		if _, err := os.Stat(filepath.Join(dataDir, name)); err == nil {
			return fmt.Errorf("%q is not empty; restore the backup on an empty host, or remove everything with `slipway down --purge`", dataDir)
		}
	}
	return nil
}

// Read reads an archive to its end, which verifies its checksum, and returns the archive's
// manifest. It returns an error if the archive contains a file outside the data directory that
// already exists with different content.
func Read(path string) (Manifest, error) {
	var manifest Manifest
	var conflicts []error
	err := walk(path, func(header *tar.Header, content io.Reader) error {
		if header.Name == manifestName {
			return json.NewDecoder(content).Decode(&manifest)
		}
		if manifest.Format != formatVersion {
			return errors.New("it is not a backup, or another version of Slipway created it")
		}
		target, err := target("/", header.Name)
		if err != nil || !strings.HasPrefix(header.Name, filesPrefix) || header.Typeflag != tar.TypeReg {
			return err
		}
		if !same(target, header, content) {
			conflicts = append(conflicts, fmt.Errorf("%q already exists with different content; move the file to another directory", target))
		}
		return nil
	})
	if err != nil {
		return manifest, fmt.Errorf("read backup %q: %w", path, err)
	}
	return manifest, errors.Join(conflicts...)
}

// same reports whether a file either does not exist or has the same content as an entry.
func same(path string, header *tar.Header, content io.Reader) bool {
	existing, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || header.Size > maxCompared {
		return false
	}
	stored, err := io.ReadAll(content)
	return err == nil && bytes.Equal(stored, existing)
}

// Restore writes the files in an archive that Read has accepted, and then calls finish. Until
// Restore has returned nil, Interrupted returns true for the data directory, and Restore can be
// repeated.
func Restore(path, dataDir string, finish func() error) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	marker := filepath.Join(dataDir, markerName)
	if err := atomicfile.Write(marker, nil, 0o600); err != nil {
		return err
	}
	var folders []func() error
	err := walk(path, func(header *tar.Header, content io.Reader) error {
		if header.Name == manifestName {
			return nil
		}
		target, err := target(dataDir, header.Name)
		if err != nil {
			return err
		}
		if err := extract(target, header, content); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir { // set the time last, because writing files changes it
			folders = append(folders, func() error { return os.Chtimes(target, header.AccessTime, header.ModTime) })
		}
		return nil
	})
	for _, set := range folders {
		err = errors.Join(err, set())
	}
	if err != nil {
		return fmt.Errorf("restore backup %q: %w; repeat the command, or remove everything with `slipway down --purge`", path, err)
	}
	if err := finish(); err != nil {
		return err
	}
	if err := os.Remove(marker); err != nil {
		return fmt.Errorf("complete the restore: %w", err)
	}
	return atomicfile.SyncFolder(dataDir)
}

// walk calls visit for each entry in an archive.
func walk(path string, visit func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	entries := tar.NewReader(content)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, content) // reads to the checksum at the end of the file
			return err
		}
		if err != nil {
			return err
		}
		if err := visit(header, entries); err != nil {
			return fmt.Errorf("entry %q: %w", header.Name, err)
		}
	}
}

// target returns the path that an entry is restored to.
func target(dataDir, name string) (string, error) {
	for prefix, root := range map[string]string{dataPrefix: dataDir, filesPrefix: "/"} {
		relative, hasPrefix := strings.CutPrefix(name, prefix)
		if hasPrefix && (relative == "" || filepath.IsLocal(filepath.FromSlash(relative))) {
			return filepath.Join(root, filepath.FromSlash(relative)), nil
		}
	}
	return "", errors.New("it is not an entry of a backup")
}

// extract writes an entry with its owner, mode and modification time.
func extract(path string, header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode().Perm()
	if header.Typeflag == tar.TypeDir {
		err := os.MkdirAll(path, 0o700)
		return errors.Join(err, os.Lchown(path, header.Uid, header.Gid), os.Chmod(path, mode))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return errors.Join(os.Symlink(header.Linkname, path), os.Lchown(path, header.Uid, header.Gid))
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chown(header.Uid, header.Gid), file.Chmod(mode), file.Sync(), file.Close(),
		os.Chtimes(path, header.ModTime, header.ModTime))
}
