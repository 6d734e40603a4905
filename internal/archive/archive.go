// Package archive extracts tar archives from untrusted sources. It writes nothing outside the
// target directory, regardless of the names and links in an archive, and creates neither devices
// nor pipes.
package archive

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

// ErrOutside means that an entry's name leads outside the target directory.
var ErrOutside = errors.New("the path is outside the target directory")

// Extractor writes the entries of tar archives to a directory. It keeps permissions and
// modification times, but drops owners and set-ID bits. A directory is always writable by its
// owner.
type Extractor struct {
	// Root is the target directory.
	Root *os.Root
	// Select reports whether to extract an entry. name is relative to Root. If Select is nil, all
	// entries are extracted.
	Select func(name string, header *tar.Header) (bool, error)
	// Unsupported handles an entry that is neither a file, a directory nor an accepted link. The
	// entry is skipped if Unsupported returns nil.
	Unsupported func(name string, header *tar.Header) error
	// Mode returns the permissions of a file or directory. If Mode is nil, the archive's
	// permissions are kept.
	Mode func(fs.FileMode) fs.FileMode
	// Copy copies a file's content. If it is nil, io.Copy is used.
	Copy func(to io.Writer, from io.Reader) (int64, error)
	// LocalLinks makes Extract accept only links to targets in Root, and no entries below a link.
	// Otherwise, symbolic links can have any target, and entries can be below links whose targets
	// are in Root.
	LocalLinks bool
}

// Extract reads an archive up to its end marker.
func (e *Extractor) Extract(archive io.Reader) error {
	return Walk(archive, func(header *tar.Header, content io.Reader) error {
		if header.Typeflag == tar.TypeXGlobalHeader {
			return nil
		}
		name, err := Name(header.Name)
		if err != nil {
			return err
		}
		if e.Select != nil {
			if ok, err := e.Select(name, header); err != nil || !ok {
				return err
			}
		}
		return e.entry(name, header, content)
	})
}

// Walk calls visit for each entry of a tar archive. Its errors contain the entry's name.
func Walk(archive io.Reader, visit func(header *tar.Header, content io.Reader) error) error {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := visit(header, reader); err != nil {
			return fmt.Errorf("extract %q: %w", header.Name, err)
		}
	}
}

// Name returns an entry's cleaned name. It returns ErrOutside if the name leads outside the
// directory.
func Name(name string) (string, error) {
	clean := path.Clean(name)
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", ErrOutside
	}
	return clean, nil
}

func (e *Extractor) entry(name string, header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode()
	if header.Typeflag == tar.TypeDir {
		return e.directory(name, mode)
	}
	if err := e.parents(name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		if err := e.file(name, mode, content); err != nil {
			return err
		}
		return e.Root.Chtimes(name, header.ModTime, header.ModTime)
	case tar.TypeSymlink:
		if e.LocalLinks && !localTarget(name, header.Linkname) {
			break
		}
		if err := Clear(e.Root, name); err != nil {
			return err
		}
		return e.Root.Symlink(filepath.FromSlash(header.Linkname), name)
	case tar.TypeLink:
		target, err := e.linkTarget(name, header.Linkname)
		if err != nil {
			return err
		}
		if target == "" {
			break
		}
		if err := Clear(e.Root, name); err != nil {
			return err
		}
		return e.Root.Link(target, name)
	}
	return e.Unsupported(name, header)
}
