package image

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// blobRegistry is a registry that serves a test's content in every repository.
type blobRegistry struct {
	host string

	mutex sync.Mutex
	// blobs contains manifests, configurations and layers. tag is the digest of the content with
	// the tag "1".
	blobs map[digest.Digest]blob
	tag   digest.Digest
	// requests counts requests by method and digest.
	requests map[string]int
	// intercept handles the request itself if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
}

type blob struct {
	mediaType string
	data      []byte
}

func newBlobRegistry(t *testing.T) *blobRegistry {
	t.Helper()
	r := &blobRegistry{blobs: map[digest.Digest]blob{}, requests: map[string]int{}}
	r.host = httpServer(t, r)
	return r
}

func (r *blobRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mutex.Lock()
	name := digest.Digest(req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:])
	if name == "1" {
		name = r.tag
	}
	r.requests[req.Method+" "+name.String()]++
	blob, ok := r.blobs[name]
	intercept := r.intercept
	r.mutex.Unlock()
	if intercept != nil && intercept(w, req) {
		return
	}
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", blob.mediaType)
	w.Header().Set("Docker-Content-Digest", name.String())
	w.Header().Set("Content-Length", strconv.Itoa(len(blob.data)))
	if req.Method == http.MethodGet {
		w.Write(blob.data)
	}
}

// count returns the number of requests for a blob's content.
func (r *blobRegistry) count(name digest.Digest) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.requests["GET "+name.String()]
}

// add adds a blob and returns its descriptor.
func (r *blobRegistry) add(mediaType string, data []byte) ocispec.Descriptor {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	r.blobs[desc.Digest] = blob{mediaType, data}
	return desc
}

func (r *blobRegistry) addJSON(t *testing.T, mediaType string, value any) ocispec.Descriptor {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return r.add(mediaType, data)
}

// setTag points the tag "1" to a manifest or index.
func (r *blobRegistry) setTag(desc ocispec.Descriptor) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tag = desc.Digest
}

func (r *blobRegistry) remove(name digest.Digest) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.blobs, name)
}

// fakeImage contains the parts of an image, which a test can change before it adds the manifest.
type fakeImage struct {
	config   ocispec.Image
	layers   []ocispec.Descriptor
	manifest ocispec.Manifest
}

// newImage adds an image whose layers contain one file each.
func (r *blobRegistry) newImage(t *testing.T, files ...string) *fakeImage {
	t.Helper()
	image := &fakeImage{config: ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}}}
	image.config.RootFS.Type = "layers"
	for _, file := range files {
		layer := tarFile(t, file, []byte(file))
		image.config.RootFS.DiffIDs = append(image.config.RootFS.DiffIDs, digest.FromBytes(layer))
		image.layers = append(image.layers, r.add(ocispec.MediaTypeImageLayerGzip, gzipped(layer)))
	}
	return image
}

// publish adds the configuration and the manifest, and points the tag "1" to the manifest.
func (r *blobRegistry) publish(t *testing.T, image *fakeImage) ocispec.Descriptor {
	t.Helper()
	config := image.manifest.Config
	if config.Digest == "" {
		config = r.addJSON(t, ocispec.MediaTypeImageConfig, image.config)
		config.URLs = image.manifest.Config.URLs
	}
	image.manifest = ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: image.layers,
	}
	desc := r.addJSON(t, ocispec.MediaTypeImageManifest, image.manifest)
	r.setTag(desc)
	return desc
}
