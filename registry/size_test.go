package registry

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestSizeOfIndexIsSizeOfLargestImage(t *testing.T) {
	g := newTestRegistry(t)
	var want int64
	var index v1.ImageIndex = empty.Index
	for _, size := range []int64{100, 5000, 300} {
		image, err := random.Image(size, 2)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		total := manifest.Config.Size
		for _, layer := range manifest.Layers {
			total += layer.Size
		}
		want = max(want, total)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image})
	}
	nested := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index})
	for title, tt := range map[string]struct {
		index v1.ImageIndex
		want  int64
	}{"of images": {index, want}, "of an index": {nested, 0}, "of nothing": {empty.Index, 0}} {
		tag, err := name.NewTag(g.host + "/shop/app:v1")
		if err == nil {
			err = remote.WriteIndex(tag, tt.index)
		}
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := tt.index.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.largest(t.Context(), "shop/app", manifest); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", title, got, tt.want)
		}
		if got := g.largest(t.Context(), "shop/other", manifest); got != 0 {
			t.Errorf("%s, in a repository without it: %d bytes", title, got)
		}
	}
}
