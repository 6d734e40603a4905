package rsync

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/archive"
)

// unpacker extracts an archive from a container to a local directory. Because the archive can be
// malicious, the unpacker neither follows links nor creates links that point outside the directory.
// It skips entries that are not files, directories or links.
type unpacker struct {
	sync *sync
	root *os.Root
	// names contains the names of the selected archive entries.
	names map[string]bool
}

// extract reads an archive to its end and unpacks the selected entries.
func (u *unpacker) extract(in io.Reader) error {
	extractor := archive.Extractor{
		Root: u.root, LocalLinks: true, Select: u.selects, Mode: u.mode,
		Unsupported: func(name string, _ *tar.Header) error {
			fmt.Fprintf(u.sync.ErrOut, "WARNING: skipping %q: it is not a file or directory, or it is a link to a path outside the directory\n", name)
			return nil
		},
	}
	if err := extractor.Extract(in); err != nil {
		return fmt.Errorf("unpack the container's archive: %w", err)
	}
	_, err := io.Copy(io.Discard, in) // tar pads the archive after the last entry
	return err
}

// selects reports whether to extract an entry. It does not select existing local directories, so
// that they keep their permissions.
func (u *unpacker) selects(name string, header *tar.Header) (bool, error) {
	isDir := header.Typeflag == tar.TypeDir
	if name == "." || !u.sync.filter.keeps(name, isDir) {
		return false, nil
	}
	u.names[name] = true
	if !isDir {
		u.sync.printFile(name)
		return true, nil
	}
	info, err := u.root.Lstat(name)
	return err != nil || !info.IsDir(), nil
}

func (u *unpacker) mode(mode fs.FileMode) fs.FileMode {
	if u.sync.noPerms {
		return plain(mode)
	}
	return mode
}
