package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const defaultDirMode, ownerMode = 0o755, 0o700

// parents creates an entry's parent directories.
func (e *Extractor) parents(name string) error {
	if !e.LocalLinks {
		return e.Root.MkdirAll(path.Dir(name), defaultDirMode)
	}
	for i, char := range name {
		if char != '/' {
			continue
		}
		err := e.Root.Mkdir(name[:i], defaultDirMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := e.Root.Lstat(name[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%q exists and is not a directory", name[:i])
		}
	}
	return nil
}

func (e *Extractor) directory(name string, mode fs.FileMode) error {
	if e.LocalLinks {
		if err := e.parents(name + "/"); err != nil {
			return err
		}
	}
	return Mkdir(e.Root, name, e.permissions(mode))
}

func (e *Extractor) file(name string, mode fs.FileMode, content io.Reader) error {
	clone := e.Copy
	if clone == nil {
		clone = io.Copy
	}
	file, err := Create(e.Root, name)
	if err != nil {
		return err
	}
	_, err = clone(file, content)
	if err == nil {
		err = file.Chmod(e.permissions(mode))
	}
	return errors.Join(err, file.Close())
}

// linkTarget returns the name of the file that a hard link refers to, or "" if the link is not
// accepted.
func (e *Extractor) linkTarget(name, link string) (string, error) {
	if !e.LocalLinks {
		return Name(link)
	}
	target := path.Clean(link)
	// Do not accept a hard link to a symbolic link: the symbolic link would then also have a name
	// in another directory, from which its relative target could resolve to another path.
	info, err := e.Root.Lstat(target)
	if err != nil || !info.Mode().IsRegular() || target == name {
		return "", nil
	}
	return target, nil
}

func (e *Extractor) permissions(mode fs.FileMode) fs.FileMode {
	if e.Mode != nil {
		mode = e.Mode(mode)
	}
	return mode.Perm()
}

// localTarget reports whether a symbolic link points to a path in the directory. A target can
// contain ".." only at its beginning, because after the name of another link, ".." leads elsewhere.
func localTarget(name, target string) bool {
	return target != "" && !strings.ContainsRune(target, '\\') && !path.IsAbs(target) &&
		path.Clean(target) == strings.TrimSuffix(target, "/") &&
		filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), target)))
}

// Mkdir creates a directory and its parents, and sets its permissions.
func Mkdir(root *os.Root, name string, mode fs.FileMode) error {
	mode |= ownerMode
	if err := root.MkdirAll(name, mode); err != nil {
		return err
	}
	return root.Chmod(name, mode)
}

// Create creates a file that only its owner can access, and its parent directories. It replaces a
// file or link with that name, so that the old file's other names keep their content.
func Create(root *os.Root, name string) (*os.File, error) {
	if err := Clear(root, name); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Clear creates the parent directories of a name, and removes a file or link with that name. It
// does not remove a directory.
func Clear(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), defaultDirMode); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = root.Remove(name)
	}
	return err
}
