package payload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// Open returns an embedded program's description and uncompressed content. name is a constant such
// as manifest.Builder. The caller must close the content. Open does not write to the disk. If the
// program is not embedded, it returns ErrNotEmbedded.
func Open(name string) (manifest.Program, io.ReadCloser, error) {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		return manifest.Program{}, nil, fmt.Errorf("read embedded programs: %w", err)
	}
	m, err := manifest.Read(files)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest.Program{}, nil, ErrNotEmbedded
	}
	if err != nil {
		return manifest.Program{}, nil, fmt.Errorf("read embedded programs: %w", err)
	}
	program, ok := m.Find(name)
	if !ok {
		return manifest.Program{}, nil, fmt.Errorf("%w (program %q is missing)", ErrNotEmbedded, name)
	}
	content, err := open(files, program)
	if err != nil {
		return manifest.Program{}, nil, fmt.Errorf("read embedded program %q: %w", name, err)
	}
	return program, content, nil
}

// open returns the uncompressed content of a program in files.
func open(files fs.FS, program manifest.Program) (io.ReadCloser, error) {
	archive, err := files.Open(program.Archive())
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(archive, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		archive.Close()
		return nil, err
	}
	return content{decoder.IOReadCloser(), archive}, nil
}

// content is an archive's decompressed content. Close closes both the content and the archive.
type content struct {
	io.ReadCloser
	archive io.Closer
}

func (c content) Close() error { return errors.Join(c.ReadCloser.Close(), c.archive.Close()) }
