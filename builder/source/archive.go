package source

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Extract writes an archive to a directory: tar, plain or compressed by gzip, bzip2 or zstd, or zip. It reads it once, as it comes.
//
// Entries that lead out of the directory, by their name or through a link, and devices, pipes and sockets are errors. A symbolic link is only
// written down, wherever it points: what follows it later stays in the directory too. Owners and special permissions are not kept.
func Extract(ctx context.Context, archive io.Reader, to *os.Root, limit *Limit) error {
	sent := arrive(ctx, archive, limit)
	defer sent.Close()
	in := bufio.NewReaderSize(sent, 1<<16)
	magic, err := in.Peek(4)
	if len(magic) == 0 {
		return fmt.Errorf("read archive: %w", or(err, io.ErrUnexpectedEOF, "nothing was uploaded"))
	}
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		return extractTar(unzipped, to, limit)
	case bytes.HasPrefix(magic, []byte("BZh")):
		return extractTar(bzip2.NewReader(in), to, limit)
	case bytes.Equal(magic, []byte("\x28\xb5\x2f\xfd")):
		unzipped, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		defer unzipped.Close()
		return extractTar(unzipped, to, limit)
	case bytes.HasPrefix(magic, []byte("PK")):
		return extractZip(in, to, limit)
	}
	return extractTar(in, to, limit)
}

// or is the error that end means, when err is the end of the input.
func or(err, end error, text string) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", text, end)
	}
	return err
}

func extractTar(in io.Reader, to *os.Root, limit *Limit) error {
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if err := extractEntry(header, archive, to, limit); err != nil {
			return fmt.Errorf("extract %q: %w", header.Name, err)
		}
	}
}

func extractEntry(header *tar.Header, content io.Reader, to *os.Root, limit *Limit) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := inside(header.Name)
	if err != nil {
		return err
	}
	if err := limit.file(); err != nil {
		return err
	}
	mode := header.FileInfo().Mode().Perm()
	if header.Typeflag == tar.TypeDir {
		return makeDirectory(to, name, mode)
	}
	if err := replace(to, name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		if err := writeFile(to, name, mode, content, limit); err != nil {
			return err
		}
		return to.Chtimes(name, header.ModTime, header.ModTime)
	case tar.TypeSymlink:
		return to.Symlink(header.Linkname, name)
	case tar.TypeLink:
		target, err := inside(header.Linkname)
		if err != nil {
			return err
		}
		return to.Link(target, name)
	}
	return fmt.Errorf("an entry of type %q is neither a file, a directory nor a link, and no source of a build", header.Typeflag)
}

// extractZip extracts an archive whose table of contents stands at its end, and that therefore is stored first.
func extractZip(in io.Reader, to *os.Root, limit *Limit) error {
	spool, err := os.CreateTemp("", "upload-*.zip")
	if err != nil {
		return fmt.Errorf("store archive: %w", err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	size, err := io.Copy(limited{spool, limit}, in)
	if err != nil {
		return fmt.Errorf("store archive: %w", err)
	}
	archive, err := zip.NewReader(spool, size)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	for _, file := range archive.File {
		if err := extractZipped(file, to, limit); err != nil {
			return fmt.Errorf("extract %q: %w", file.Name, err)
		}
	}
	return nil
}

func extractZipped(file *zip.File, to *os.Root, limit *Limit) error {
	name, err := inside(file.Name)
	if err != nil {
		return err
	}
	if err := limit.file(); err != nil {
		return err
	}
	mode := file.Mode()
	if mode.IsDir() {
		return makeDirectory(to, name, mode.Perm())
	}
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := replace(to, name); err != nil {
		return err
	}
	switch {
	case mode.IsRegular():
		return writeFile(to, name, mode.Perm(), content, limit)
	case mode.Type() == fs.ModeSymlink:
		const longest = 4096 // PATH_MAX
		target, err := io.ReadAll(io.LimitReader(content, longest))
		if err != nil {
			return err
		}
		return to.Symlink(string(target), name)
	}
	return fmt.Errorf("an entry of type %q is neither a file, a directory nor a link, and no source of a build", mode.Type())
}

// inside returns the name of an entry below the directory.
func inside(name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean(name), "./")
	if path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0) {
		return "", errors.New("the name leads out of the archive")
	}
	return clean, nil
}

// makeDirectory makes a directory that those who build may enter and write to.
func makeDirectory(to *os.Root, name string, mode fs.FileMode) error {
	const owner = 0o700
	if err := to.MkdirAll(name, mode|owner); err != nil {
		return err
	}
	return to.Chmod(name, mode|owner)
}

// replace makes room for an entry: the directory it is in exists, and nothing of its name but perhaps a directory.
func replace(to *os.Root, name string) error {
	if err := to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeFile writes a new file.
func writeFile(to *os.Root, name string, mode fs.FileMode, content io.Reader, limit *Limit) error {
	file, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(limited{file, limit}, content); err != nil {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return file.Close()
}

// Store writes an upload to one file of a directory.
func Store(ctx context.Context, upload io.Reader, to *os.Root, name string, limit *Limit) error {
	name, err := inside(name)
	if err != nil {
		return fmt.Errorf("store %q: %w", name, err)
	}
	sent := arrive(ctx, upload, limit)
	defer sent.Close()
	if err := writeFile(to, name, 0o644, sent, limit); err != nil {
		return fmt.Errorf("store %q: %w", name, err)
	}
	return nil
}
