package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/archive/archivetest"
)

// extract extracts an archive to a directory, and checks that nothing appears next to that
// directory.
func extract(t testing.TB, archive io.Reader, limit *Limit) (dir string, err error) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, "source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = Extract(t.Context(), archive, root, limit)
	if siblings, readErr := os.ReadDir(parent); readErr != nil || len(siblings) != 1 {
		t.Errorf("the parent directory contains %v, %v", siblings, readErr)
	}
	return dir, err
}

func TestExtractSupportsEachFormat(t *testing.T) {
	plain := archivetest.Tar(t, tar.Header{Name: "./sub/run", Mode: 0o4755}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "sub/run"},
		tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "./sub/run"}, tar.Header{Name: "closed/", Typeflag: tar.TypeDir, Mode: 0o500})
	compressed := func(writer io.WriteCloser, buffer *bytes.Buffer) []byte {
		if _, err := writer.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		return buffer.Bytes()
	}
	var zipped, zstandard bytes.Buffer
	encoder, err := zstd.NewWriter(&zstandard)
	if err != nil {
		t.Fatal(err)
	}
	for form, archive := range map[string][]byte{
		"tar": plain, "gzip": compressed(gzip.NewWriter(&zipped), &zipped), "zstd": compressed(encoder, &zstandard),
	} {
		dir, err := extract(t, bytes.NewReader(archive), NewLimit())
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		for _, name := range []string{"sub/run", "link", "hard"} {
			if got := content(dir, name); got != archivetest.Content {
				t.Errorf("%s: %s has %q", form, name, got)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "sub/run")); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: the mode of a file is %v, %v", form, info.Mode(), err)
		}
		if info, err := os.Stat(filepath.Join(dir, "closed")); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: the mode of a directory is %v, %v", form, info.Mode(), err)
		}
	}
}

func TestExtractZip(t *testing.T) {
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	for _, name := range []string{"sub/", "sub/file"} {
		file, err := writer.Create(name)
		if err == nil && !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(file, "content")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := extract(t, &buffer, NewLimit())
	if err != nil || content(dir, "sub/file") != "content" {
		t.Errorf("%v, %q", err, content(dir, "sub/file"))
	}
}

func TestExtractRejectsAttacks(t *testing.T) {
	archivetest.Run(t, func(t *testing.T, attack archivetest.Attack, dir string) error {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		err = Extract(t.Context(), bytes.NewReader(archivetest.Tar(t, attack.Entries...)), root, NewLimit())
		if !attack.Harmless && (err == nil || !strings.HasPrefix(err.Error(), "extract ")) {
			t.Errorf("got error %v, want an error that names the entry", err)
		}
		return err
	})
}

func TestExtractStopsAtLimit(t *testing.T) {
	for name, bomb := range archivetest.Bombs(t) {
		t.Run(name, func(t *testing.T) {
			want := "larger than 1MiB"
			if name == "endless entries" {
				want = "more than 10 files"
			}
			_, err := extract(t, bomb, &Limit{Bytes: 1 << 20, Files: 10})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %q", err, want)
			}
		})
	}
}

func TestExtractRejectsEmptyUpload(t *testing.T) {
	if _, err := extract(t, strings.NewReader(""), NewLimit()); err == nil || !strings.Contains(err.Error(), "the upload is empty") {
		t.Error(err)
	}
}

func TestStoreWritesOneFile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Store(t.Context(), strings.NewReader("content"), root, "app.war", NewLimit()); err != nil || content(dir, "app.war") != "content" {
		t.Errorf("%v, %q", err, content(dir, "app.war"))
	}
	if err := Store(t.Context(), strings.NewReader("content"), root, "../app.war", NewLimit()); err == nil {
		t.Error("stored a file outside the directory")
	}
}

// FuzzExtract verifies that extracting an archive writes nothing outside the directory, and no more
// than the limit.
func FuzzExtract(f *testing.F) {
	f.Add(archivetest.Tar(f, tar.Header{Name: "file"}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../x"}, tar.Header{Name: "link/file"}))
	f.Add(archivetest.Tar(f, tar.Header{Name: "../file"}))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("BZh9"))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		const maxBytes = 1 << 20
		dir, _ := extract(t, bytes.NewReader(archive), &Limit{Bytes: maxBytes, Files: 100})
		var size int64
		err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil || size > maxBytes {
			t.Errorf("extracted %d bytes, %v", size, err)
		}
	})
}
