package content

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/archive"
)

// spot is a destination for an image entry.
type spot struct {
	root *os.Root
	name string
	want *want
}

func (u *unpacker) places(name string) (all []spot) {
	for _, w := range u.wants {
		if target, ok := w.target(name); ok {
			all = append(all, spot{u.roots[w.directory], target, w})
		}
	}
	return all
}

// files writes a file's content to every destination of every name in names.
func (u *unpacker) files(names []string, header *tar.Header, content io.Reader) (err error) {
	var writers []io.Writer
	var places []spot
	for _, name := range names {
		places = append(places, u.places(name)...)
	}
	for _, p := range places {
		file, err := archive.Create(p.root, p.name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		writers = append(writers, file)
	}
	if _, err := io.Copy(io.MultiWriter(writers...), content); err != nil {
		return err
	}
	for _, p := range places {
		problem := u.chown(p, header)
		if problem == nil {
			problem = p.root.Chmod(p.name, u.mode(header))
		}
		if problem == nil {
			problem = p.root.Chtimes(p.name, header.ModTime, header.ModTime)
		}
		err = errors.Join(err, problem)
	}
	return err
}

// special writes a directory or a symbolic link. If --only-files is set, it does nothing.
func (u *unpacker) special(p spot, header *tar.Header) error {
	if u.onlyFiles {
		return nil
	}
	if err := archive.Clear(p.root, p.name); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		err := p.root.Symlink(header.Linkname, p.name)
		if errors.Is(err, fs.ErrExist) {
			fmt.Fprintf(u.ErrOut, "warning: %q stays a directory, because it already contains files; in an earlier layer it is a link to %q\n", p.name, header.Linkname)
			return nil
		}
		if err != nil {
			return err
		}
		return u.chown(p, header)
	}
	if err := p.root.MkdirAll(p.name, 0o755); err != nil {
		return err
	}
	u.modes = append(u.modes, directoryMode{p.root, p.name, u.mode(header)})
	return u.chown(p, header)
}

func (u *unpacker) chown(p spot, header *tar.Header) error {
	if !u.ownership {
		return nil
	}
	return p.root.Lchown(p.name, header.Uid, header.Gid)
}

// mode returns the mode of the file to write. It keeps the setuid, setgid and sticky bits only if
// ownership is preserved.
func (u *unpacker) mode(header *tar.Header) fs.FileMode {
	mode := header.FileInfo().Mode()
	if u.ownership {
		return mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	}
	return mode.Perm()
}
