package content

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// FuzzUnpack checks that unpacking layers does not change anything outside the directory.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte("not an archive"), []byte{})
	f.Add(make([]byte, 1024), make([]byte, 512))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		base := t.TempDir()
		inside := filepath.Join(base, "inside")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		e := &extract{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}}
		layers := []v1.Layer{static.NewLayer(lower, types.OCIUncompressedLayer), static.NewLayer(upper, types.OCIUncompressedLayer)}
		_ = e.unpack(layers, []*want{{source: ".", all: true, directory: inside}})
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 {
			t.Errorf("unexpected files %v, %v", entries, err)
		}
		err := filepath.WalkDir(inside, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
				t.Errorf("unexpected file %v", entry)
			}
			return err
		})
		if err != nil && !os.IsPermission(err) {
			t.Error(err)
		}
	})
}
