package rsync

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpacking writes what an archive has below a directory. The archive may be hostile: nothing is
// written through a link of it or of the directory, no link that is made leads out of the
// directory, and what is neither file, directory nor such a link is left out.
type unpacking struct {
	sync *sync
	root *os.Root
	// names are what has come.
	names map[string]bool
}

// all reads an archive to its end.
func (u *unpacking) all(in io.Reader) error {
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, in) // tar fills its last block
			return err
		}
		if err != nil {
			return fmt.Errorf("read the container's archive: %w", err)
		}
		name := path.Clean(header.Name)
		if name == "." || !u.sync.filter.keeps(name, header.Typeflag == tar.TypeDir) {
			continue
		}
		if err := u.one(header, name, archive); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func (u *unpacking) one(header *tar.Header, name string, content io.Reader) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return errors.New("leads out of the directory")
	}
	if err := u.parents(name); err != nil {
		return err
	}
	u.names[name] = true
	mode := header.FileInfo().Mode()
	switch header.Typeflag {
	case tar.TypeDir:
		return u.directory(name, mode)
	case tar.TypeReg:
		u.sync.say(name)
		return u.file(header, name, mode, content)
	case tar.TypeSymlink:
		if !stays(name, header.Linkname) {
			break
		}
		return u.link(name, func() error { return u.root.Symlink(filepath.FromSlash(header.Linkname), name) })
	case tar.TypeLink:
		from := path.Clean(header.Linkname)
		info, err := u.root.Lstat(from)
		if err != nil || !info.Mode().IsRegular() || from == name {
			break
		}
		return u.link(name, func() error { return u.root.Link(from, name) })
	}
	fmt.Fprintf(u.sync.ErrOut, "WARNING: %q is no file or directory, or a link that leads out of the directory, and is not copied\n", name)
	return nil
}

// parents makes the directories above a name. A link among them is refused: links would lead
// elsewhere from there.
func (u *unpacking) parents(name string) error {
	for at, char := range name {
		if char != '/' {
			continue
		}
		if err := u.directory(name[:at], fs.ModeDir|0o755); err != nil {
			return err
		}
	}
	return nil
}

// directory makes one that is missing, which its owner may always write to.
func (u *unpacking) directory(name string, mode fs.FileMode) error {
	info, err := u.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%q is there and is no directory", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return u.root.Mkdir(name, u.permissions(mode)|0o700)
}

// permissions are those of the source, without the bits that give rights away.
func (u *unpacking) permissions(mode fs.FileMode) fs.FileMode {
	if u.sync.noPerms {
		return plain(mode)
	}
	return mode.Perm()
}

// file makes a file anew, so that nothing else that is linked to the old one changes.
func (u *unpacking) file(header *tar.Header, name string, mode fs.FileMode, content io.Reader) error {
	if err := u.clear(name); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Chmod(u.permissions(mode)), file.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

func (u *unpacking) link(name string, make func() error) error {
	if err := u.clear(name); err != nil {
		return err
	}
	u.sync.say(name)
	return make()
}

// clear removes what has a name, unless it is a directory.
func (u *unpacking) clear(name string) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%q is there and is a directory", name)
	}
	return u.root.Remove(name)
}

// stays says whether a symbolic link leads to something in the directory. Its target may go up only
// at the beginning: behind the name of another link that would lead somewhere else than the text
// says.
func stays(name, target string) bool {
	return target != "" && !strings.ContainsRune(target, '\\') && path.Clean(target) == strings.TrimSuffix(target, "/") && !path.IsAbs(target) &&
		filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), target)))
}
