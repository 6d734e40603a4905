package source

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/archive"
)

const maxLinkBytes = 4096 // the kernel's PATH_MAX

// extractZip stores the archive in a temporary file before it extracts it, because a zip archive
// has its directory at the end.
func extractZip(in io.Reader, to *os.Root, limit *Limit) error {
	spool, err := os.CreateTemp("", "upload-*.zip")
	if err != nil {
		return fmt.Errorf("store archive: %w", err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	size, err := limit.copy(spool, in)
	if err != nil {
		return fmt.Errorf("store archive: %w", err)
	}
	reader, err := zip.NewReader(spool, size)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	for _, file := range reader.File {
		if err := extractZipEntry(file, to, limit); err != nil {
			return fmt.Errorf("extract %q: %w", file.Name, err)
		}
	}
	return nil
}

func extractZipEntry(file *zip.File, to *os.Root, limit *Limit) error {
	name, err := archive.Name(file.Name)
	if err != nil {
		return err
	}
	if err := limit.addFile(); err != nil {
		return err
	}
	mode := file.Mode()
	if mode.IsDir() {
		return archive.Mkdir(to, name, mode.Perm())
	}
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	switch {
	case mode.IsRegular():
		return writeFile(to, name, mode.Perm(), content, limit)
	case mode.Type() == fs.ModeSymlink:
		target, err := io.ReadAll(io.LimitReader(content, maxLinkBytes))
		if err != nil {
			return err
		}
		if err := archive.Clear(to, name); err != nil {
			return err
		}
		return to.Symlink(string(target), name)
	}
	return errUnsupported(mode.Type())
}
