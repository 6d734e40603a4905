package rsync

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/internal/archive/archivetest"
)

// FuzzUnpack checks that an archive from a container cannot change any files outside the directory
// or create links to them.
func FuzzUnpack(f *testing.F) {
	f.Add(archivetest.Tar(f, tar.Header{Name: "a/b", Mode: 0o4755}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../outside"}, tar.Header{Name: "link/x"}))
	f.Add(archivetest.Tar(f, tar.Header{Name: "../outside/x"}, tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../outside/kept"}))
	f.Add(archivetest.Tar(f, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}, tar.Header{Name: "b", Typeflag: tar.TypeSymlink, Linkname: "a/../.."}))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		base := t.TempDir()
		outside, inside := filepath.Join(base, "outside"), filepath.Join(base, "inside")
		for _, directory := range []string{outside, inside} {
			if err := os.Mkdir(directory, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(inside)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{sync: &sync{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}}, root: root, names: map[string]bool{}}
		_ = u.extract(bytes.NewReader(archive))
		if content, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(content) != "kept" {
			t.Errorf("outside is %q, %v", content, err)
		}
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 2 {
			t.Errorf("there are %v, %v", entries, err)
		}
		err = filepath.WalkDir(inside, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink == 0 {
				return err
			}
			if to, err := filepath.EvalSymlinks(file); err == nil && to != inside && !strings.HasPrefix(to, inside+"/") {
				t.Errorf("%q resolves to %q", file, to)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
