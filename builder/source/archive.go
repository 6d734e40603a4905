package source

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/archive"
)

const maxZstdMemory = 256 << 20

// Extract extracts an archive to a directory. The archive is a zip or tar archive; a tar archive
// can be compressed with gzip, bzip2 or zstd. Extract reads a tar archive as a stream.
//
// It returns an error for devices, pipes, sockets, and entries whose name or hard link target is
// outside the directory. A symbolic link can have any target, because reads of the source never
// leave the directory. Extract does not preserve owners and set-ID bits.
func Extract(ctx context.Context, upload io.Reader, to *os.Root, limit *Limit) error {
	reader := newSilenceReader(ctx, upload, limit)
	defer reader.Close()
	in := bufio.NewReaderSize(reader, 1<<16)
	magic, err := in.Peek(4)
	if len(magic) == 0 {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the upload is empty: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("read archive: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		content, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		return extractTar(content, to, limit)
	case bytes.HasPrefix(magic, []byte("BZh")):
		return extractTar(bzip2.NewReader(in), to, limit)
	case bytes.Equal(magic, []byte("\x28\xb5\x2f\xfd")):
		content, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxZstdMemory))
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		defer content.Close()
		return extractTar(content, to, limit)
	case bytes.HasPrefix(magic, []byte("PK")):
		return extractZip(in, to, limit)
	}
	return extractTar(in, to, limit)
}

func extractTar(in io.Reader, to *os.Root, limit *Limit) error {
	extractor := archive.Extractor{
		Root:   to,
		Copy:   limit.copy,
		Select: func(string, *tar.Header) (bool, error) { return true, limit.addFile() },
		Unsupported: func(_ string, header *tar.Header) error {
			return errUnsupported(header.Typeflag)
		},
	}
	return extractor.Extract(in)
}

// errUnsupported returns the error for an unsupported entry type in a tar or zip archive.
func errUnsupported(entryType any) error {
	return fmt.Errorf("an entry has type %q, which is not a file, a directory or a link: remove it from the archive", entryType)
}

// Store writes an upload to one file in a directory.
func Store(ctx context.Context, upload io.Reader, to *os.Root, name string, limit *Limit) error {
	local, err := archive.Name(name)
	if err != nil {
		return fmt.Errorf("store %q: %w", name, err)
	}
	reader := newSilenceReader(ctx, upload, limit)
	defer reader.Close()
	if err := writeFile(to, local, 0o644, reader, limit); err != nil {
		return fmt.Errorf("store %q: %w", name, err)
	}
	return nil
}

func writeFile(to *os.Root, name string, mode fs.FileMode, content io.Reader, limit *Limit) error {
	file, err := archive.Create(to, name)
	if err != nil {
		return err
	}
	_, err = limit.copy(file, content)
	if err == nil {
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}
