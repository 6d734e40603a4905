package registry

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// testRegistry is a store that tests push to and pull from without a cluster.
type testRegistry struct {
	*store
	t    *testing.T
	host string
}

func newTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	return testRegistryOn(t, Directory(t.TempDir(), false))
}

func testRegistryOn(t *testing.T, storage configuration.Storage) *testRegistry {
	t.Helper()
	storage["delete"] = configuration.Parameters{"enabled": true}
	return testRegistryWith(t, &configuration.Configuration{Storage: storage})
}

func testRegistryWith(t *testing.T, settings *configuration.Configuration) *testRegistry {
	t.Helper()
	standalone, err := (&Standalone{settings}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(standalone)
	t.Cleanup(func() {
		server.Close()
		_ = standalone.shutdown()
	})
	return &testRegistry{standalone.store, t, strings.TrimPrefix(server.URL, "http://")}
}

// layer returns a layer with random content.
func (g *testRegistry) layer() v1.Layer {
	g.t.Helper()
	layer, err := random.Layer(100, "application/vnd.oci.image.layer.v1.tar+gzip")
	if err != nil {
		g.t.Fatal(err)
	}
	return layer
}

// push pushes an image that consists of the given layers and returns its digest.
func (g *testRegistry) push(repository string, layers ...v1.Layer) string {
	g.t.Helper()
	image := g.image(layers...)
	if err := remote.Write(g.tag(repository), image); err != nil {
		g.t.Fatal(err)
	}
	return digestOf(g.t, image)
}

func (g *testRegistry) image(layers ...v1.Layer) v1.Image {
	g.t.Helper()
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		g.t.Fatal(err)
	}
	return image
}

func (g *testRegistry) tag(repository string) name.Tag {
	g.t.Helper()
	tag, err := name.NewTag(g.host + "/" + repository + ":latest")
	if err != nil {
		g.t.Fatal(err)
	}
	return tag
}

func (g *testRegistry) digest(repository, id string) name.Digest {
	g.t.Helper()
	reference, err := name.NewDigest(g.host + "/" + repository + "@" + id)
	if err != nil {
		g.t.Fatal(err)
	}
	return reference
}

func digestOf(t *testing.T, result interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// has reports whether an image and all its blobs can be pulled.
func (g *testRegistry) has(repository, digest string) bool {
	g.t.Helper()
	image, err := remote.Image(g.digest(repository, digest))
	if err != nil {
		return false
	}
	layers, err := image.Layers()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return false
		}
		_ = content.Close()
	}
	return true
}

func (g *testRegistry) collect(c collection) record.Garbage {
	g.t.Helper()
	c.store = g.store
	garbage, err := c.run(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return garbage
}

// onDisk reports whether a blob is on the disk.
func (g *testRegistry) onDisk(id string) bool {
	all := g.collect(collection{request: record.GarbageRequest{Everything: true, DryRun: true}, now: time.Now().Add(24 * time.Hour)})
	return slices.Contains(all.Blobs, id)
}

func TestUnsharedBlobsOfRemovedImageAreRemoved(t *testing.T) {
	g := newTestRegistry(t)
	shared, layer := g.layer(), g.layer()
	old, remaining := g.push("shop/app", shared, layer), g.push("shop/other", shared)
	request := record.GarbageRequest{Images: []record.GarbageImage{{Digest: old, Repositories: []string{"shop/app"}}}}
	images := map[string][]string{remaining: {digestOf(t, shared)}}

	all := map[string][]string{remaining: images[remaining], old: {digestOf(t, layer)}}
	if garbage := g.collect(collection{request: request, images: all}); len(garbage.Manifests)+len(garbage.Blobs)+len(garbage.Layers) > 0 || !g.has("shop/app", old) {
		t.Errorf("an image that was pushed again lost %+v", garbage)
	}
	request.DryRun = true
	streams := map[string][]string{"shop/app": {old}}
	dry := g.collect(collection{request: request, images: all, streams: streams})
	if !g.has("shop/app", old) {
		t.Fatal("a dry run removed content")
	}
	request.DryRun = false
	garbage := g.collect(collection{request: request, images: images})
	if !slices.Equal(garbage.Blobs, dry.Blobs) || !slices.Equal(garbage.Layers, dry.Layers) || !slices.Equal(garbage.Manifests, dry.Manifests) || garbage.Bytes != dry.Bytes {
		t.Errorf("a dry run returns %+v, then removed %+v", dry, garbage)
	}
	if g.has("shop/app", old) || g.onDisk(digestOf(t, layer)) || g.onDisk(old) {
		t.Error("the image still exists")
	}
	if !g.has("shop/other", remaining) {
		t.Error("an image that shares a layer lost it")
	}
	if garbage.Bytes == 0 || !slices.Contains(garbage.Blobs, digestOf(t, layer)) || slices.Contains(garbage.Blobs, digestOf(t, shared)) {
		t.Errorf("removed %+v", garbage)
	}
	if second := g.push("shop/app", shared, layer); second != old || !g.has("shop/app", old) {
		t.Error("a removed image cannot be pushed again")
	}
}

func TestImagesOfIndexAreRemovedWithIt(t *testing.T) {
	g := newTestRegistry(t)
	child, err := mutate.AppendLayers(empty.Image, g.layer())
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: child})
	if err := remote.WriteIndex(g.tag("shop/app"), index); err != nil {
		t.Fatal(err)
	}
	full, part := digestOf(t, index), digestOf(t, child)
	partOnly := record.GarbageRequest{Images: []record.GarbageImage{{Digest: part, Repositories: []string{"shop/app"}}}}
	if garbage := g.collect(collection{request: partOnly, images: map[string][]string{full: {part}}}); !g.has("shop/app", part) {
		t.Errorf("an image of an index was removed: %+v", garbage)
	}
	both := record.GarbageRequest{Images: []record.GarbageImage{{Digest: full, Repositories: []string{"shop/app"}, Blobs: []string{part}}}}
	if garbage := g.collect(collection{request: both}); len(garbage.Manifests) != 2 || len(garbage.Blobs) != 4 || g.has("shop/app", part) {
		t.Errorf("the index: removed %+v", garbage)
	}
}

func TestOldUnusedBlobsAreRemoved(t *testing.T) {
	g := newTestRegistry(t)
	unused, remaining := g.push("shop/lost", g.layer()), g.push("shop/kept", g.layer())
	request := record.GarbageRequest{Everything: true}
	images := map[string][]string{remaining: nil}
	if garbage := g.collect(collection{request: request, images: images, now: time.Now()}); len(garbage.Blobs)+len(garbage.Manifests)+len(garbage.Layers) > 0 {
		t.Errorf("a push in progress: removed %+v", garbage)
	}
	if garbage := g.collect(collection{request: request, images: images, now: time.Now().Add(2 * time.Hour)}); len(garbage.Blobs) != 3 || len(garbage.Manifests) != 1 {
		t.Errorf("removed %+v", garbage)
	}
	if g.has("shop/lost", unused) || !g.has("shop/kept", remaining) {
		t.Error("the wrong image was removed")
	}
}

func TestOnlyPostCollectsGarbage(t *testing.T) {
	w := httptest.NewRecorder()
	(&server{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, record.GarbagePath, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

func TestImageDoesNotKeepLayersOfOtherProject(t *testing.T) {
	for name, request := range map[string]func(digest string) record.GarbageRequest{
		"everything": func(string) record.GarbageRequest { return record.GarbageRequest{Everything: true} },
		"one image": func(digest string) record.GarbageRequest {
			return record.GarbageRequest{Images: []record.GarbageImage{{Digest: digest, Repositories: []string{"shop/app"}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTestRegistry(t)
			layer := g.layer()
			old, evil := g.push("shop/app", layer), g.push("evil/app", g.layer())
			// The Image object of mallory's image contains alice's layer, because mallory's
			// manifest refers to it.
			images := map[string][]string{evil: {digestOf(t, layer)}}
			streams := map[string][]string{"evil/app": {evil}}
			now := time.Now().Add(2 * uploadAge)
			g.collect(collection{request: request(old), images: images, streams: streams, now: now})
			if g.has("shop/app", old) {
				t.Fatal("the image still exists")
			}
			if exists(t, g.store, digestOf(t, layer)) {
				t.Error("the layer still exists, although no repository links to it")
			}
			if !g.has("evil/app", evil) {
				t.Error("the remaining image is incomplete")
			}
		})
	}
}

// exists reports whether the content with a digest is stored.
func exists(t *testing.T, s *store, id string) bool {
	t.Helper()
	_, err := s.driver.Stat(t.Context(), blobPath(digest.Digest(id)))
	if err != nil && !missing(err) {
		t.Fatal(err)
	}
	return err == nil
}
