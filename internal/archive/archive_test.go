package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/internal/archive"
	"github.com/slipway-platform/slipway/internal/archive/archivetest"
)

var errUnsupported = errors.New("unsupported entry")

func extractor(t *testing.T, dir string, localLinks bool) *archive.Extractor {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &archive.Extractor{
		Root: root, LocalLinks: localLinks,
		Unsupported: func(string, *tar.Header) error { return errUnsupported },
	}
}

func TestExtractorRejectsAttacks(t *testing.T) {
	for name, localLinks := range map[string]bool{"any links": false, "local links": true} {
		t.Run(name, func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T, attack archivetest.Attack, dir string) error {
				err := extractor(t, dir, localLinks).Extract(bytes.NewReader(archivetest.Tar(t, attack.Entries...)))
				if err == nil && !attack.Harmless {
					t.Error("extracted without an error")
				}
				return err
			})
		})
	}
}

func TestExtractorWritesFilesDirectoriesAndLinks(t *testing.T) {
	dir := t.TempDir()
	err := extractor(t, dir, true).Extract(bytes.NewReader(archivetest.Tar(t,
		tar.Header{Name: "closed/", Typeflag: tar.TypeDir, Mode: 0o500}, tar.Header{Name: "./sub/run", Mode: 0o755},
		tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "sub/run"}, tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "sub/run"})))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(filepath.Join(dir, "sub/run"))
	if err != nil || want.Mode() != 0o755 {
		t.Fatalf("mode of file is %v, %v", want.Mode(), err)
	}
	for _, name := range []string{"link", "hard"} {
		if got, err := os.Stat(filepath.Join(dir, name)); err != nil || !os.SameFile(want, got) {
			t.Errorf("%s is not the same file: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "closed")); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("mode of directory is %v, %v", info.Mode(), err)
	}
}

func TestExtractorStopsWhenCopyFails(t *testing.T) {
	const maxBytes, maxFiles = 1 << 20, 100
	errLimit := errors.New("limit exceeded")
	for name, bomb := range archivetest.Bombs(t) {
		t.Run(name, func(t *testing.T) {
			e, files := extractor(t, t.TempDir(), false), 0
			e.Select = func(string, *tar.Header) (bool, error) {
				if files++; files > maxFiles {
					return false, errLimit
				}
				return true, nil
			}
			e.Copy = func(to io.Writer, from io.Reader) (int64, error) {
				n, err := io.Copy(to, io.LimitReader(from, maxBytes))
				if err == nil && n == maxBytes {
					err = errLimit
				}
				return n, err
			}
			if err := e.Extract(bomb); !errors.Is(err, errLimit) {
				t.Errorf("got error %v, want %v", err, errLimit)
			}
		})
	}
}
