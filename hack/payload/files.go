package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// previous returns the last run's manifest. If the manifest is missing or invalid, previous returns
// an empty manifest, so every program is built.
func previous(dir string) manifest.Manifest {
	m, err := manifest.Read(os.DirFS(dir))
	if err != nil {
		return manifest.Manifest{}
	}
	return m
}

// exists reports whether dir contains the compressed program and the file is not empty.
func exists(dir string, program manifest.Program) bool {
	info, err := os.Stat(filepath.Join(dir, program.Archive()))
	return err == nil && info.Size() > 0
}

// with returns a copy of m in which program is added or replaced. The programs are in the order of
// manifest.Names.
func with(m manifest.Manifest, program manifest.Program) manifest.Manifest {
	var programs []manifest.Program
	for _, name := range manifest.Names() {
		if name == program.Name {
			programs = append(programs, program)
			continue
		}
		if old, ok := m.Find(name); ok {
			programs = append(programs, old)
		}
	}
	return manifest.Manifest{Programs: slices.Clip(programs)}
}

// save writes the manifest to dir.
func save(dir string, m manifest.Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	path := filepath.Join(dir, manifest.File)
	return atomicfile.Write(path, append(data, '\n'), 0o644)
}

// temporary returns the path of the temporary file that is later renamed to path. The file's name
// begins with a dot, so that the remains of an interrupted run are not embedded.
func temporary(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}

// compress compresses the file source with zstd and writes the result to target. It returns the
// size of target in bytes. It reads source through the reader that tee returns.
func compress(source, target string, tee func(io.Reader) io.Reader) (int64, error) {
	input, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer input.Close()
	output, err := os.Create(temporary(target))
	if err != nil {
		return 0, err
	}
	defer output.Close()
	encoder, err := zstd.NewWriter(output, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(encoder, tee(input)); err != nil {
		return 0, fmt.Errorf("compress %q: %w", source, err)
	}
	if err := encoder.Close(); err != nil {
		return 0, fmt.Errorf("compress %q: %w", source, err)
	}
	info, err := output.Stat()
	if err != nil {
		return 0, err
	}
	if err := output.Close(); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(temporary(target), target)
}
