package image

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// contents returns the digests of all blobs on the node, and the number of leases.
func (f *pullFixture) contents(t *testing.T) (blobs []digest.Digest, leases int) {
	t.Helper()
	c, err := client.New(f.store.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ContentStore().Walk(t.Context(), func(info content.Info) error {
		blobs = append(blobs, info.Digest)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	list, err := c.LeasesService().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return blobs, len(list)
}

func TestURLsInManifestsAreNotRequested(t *testing.T) {
	var requests atomic.Int32
	inside := httpServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, insideSecret)
	}))
	urls := []string{"http://" + inside + "/latest/meta-data", "https://" + inside + "/"}
	registry := newBlobRegistry(t)
	f := newPullFixture(t, registry.host)
	publish := func(place string, complete bool) {
		image := registry.newImage(t, place+fmt.Sprint(complete))
		if place == "layer" {
			image.layers[0].URLs = urls
		}
		if place == "configuration" {
			image.manifest.Config.URLs = urls
		}
		missing := image.layers[0].Digest
		manifest := registry.publish(t, image)
		if place == "configuration" {
			missing = image.manifest.Config.Digest
		}
		if place == "index" {
			missing = manifest.Digest
			manifest.URLs = urls
			manifest.Platform = &image.config.Platform
			registry.setTag(registry.addJSON(t, ocispec.MediaTypeImageIndex, ocispec.Index{
				Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{manifest},
			}))
		}
		if !complete {
			registry.remove(missing)
		}
	}
	for _, place := range []string{"layer", "configuration", "index"} {
		publish(place, true)
		if _, err := f.pull(t, registry.host+"/team/app:1"); err != nil {
			t.Errorf("URLs in the %s of an image that the registry has: %v", place, err)
		}
		publish(place, false)
		if _, err := f.pull(t, registry.host+"/team/app:1"); status.Code(err) != codes.NotFound {
			t.Errorf("URLs in the %s of an image that the registry lacks: %v, want NotFound", place, err)
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the server in the URLs received %d requests", n)
	}
}

// endless writes until the client closes the connection, and returns the number of bytes written.
func endless(w http.ResponseWriter) (size int64) {
	piece := []byte(strings.Repeat(" ", 1<<16))
	for {
		n, err := w.Write(piece)
		size += int64(n)
		if err != nil {
			return size
		}
	}
}

func TestPullRejectsResponsesThatExhaustNode(t *testing.T) {
	registry := newBlobRegistry(t)
	f := newPullFixture(t, registry.host)
	var request atomic.Int64
	isGet := func(r *http.Request, part string) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, part)
	}
	padded := func(layers ...ocispec.Descriptor) *fakeImage {
		image := registry.newImage(t, "file")
		for _, layer := range layers {
			image.layers = append(image.layers, layer)
			image.config.RootFS.DiffIDs = append(image.config.RootFS.DiffIDs, layer.Digest)
		}
		return image
	}
	for name, tt := range map[string]struct {
		prepare   func()
		intercept func(w http.ResponseWriter, r *http.Request) bool
		want      string
	}{
		"large configuration": {prepare: func() {
			image := padded()
			image.config.Author = strings.Repeat("a", maxDocument)
			registry.publish(t, image)
		}, want: "more than 4 MiB"},
		"endless configuration": {prepare: func() { registry.publish(t, padded()) }, want: "more data",
			intercept: func(w http.ResponseWriter, r *http.Request) bool {
				if !isGet(r, "/blobs/") {
					return false
				}
				request.Add(endless(w))
				return true
			}},
		"endless manifest": {want: "more data", intercept: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			if r.Method == http.MethodGet {
				request.Add(endless(w))
			}
			return true
		}},
		"encoded manifest": {prepare: func() { registry.publish(t, padded()) }, want: "encodes responses",
			intercept: func(w http.ResponseWriter, r *http.Request) bool {
				if !isGet(r, "/manifests/") {
					return false
				}
				w.Header().Set("Content-Encoding", "gzip")
				zeros := gzip.NewWriter(w)
				io.Copy(zeros, io.LimitReader(strings.NewReader(strings.Repeat(" ", 1<<20)), 1<<20))
				zeros.Close()
				return true
			}},
		"endless token": {want: "more data", intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/token") {
				request.Add(endless(w))
				return true
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, registry.host))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}},
		"endless token for a layer": {prepare: func() {
			registry.publish(t, padded(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: digest.FromString("large"), Size: 1 << 40}))
		},
			want: "more data", intercept: func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/token") {
					request.Add(endless(w))
					return true
				}
				if !isGet(r, digest.FromString("large").String()) {
					return false
				}
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, registry.host))
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}},
		"many layers": {prepare: func() {
			image := padded()
			for len(image.layers) <= maxLayers {
				image.layers = append(image.layers, image.layers[0])
			}
			registry.publish(t, image)
		}, want: "more than 500 layers"},
		"many values": {prepare: func() {
			image := padded()
			image.config.Config.Env = strings.Split(strings.Repeat("x,", maxValues), ",")
			registry.publish(t, image)
		}, want: "JSON values"},
		"configuration that is a layer": {prepare: func() {
			image := padded()
			image.manifest.Config = image.layers[0]
			registry.publish(t, image)
		}, want: "its config descriptor has another media type"},
		"layer that is a manifest": {prepare: func() {
			inner := registry.publish(t, padded())
			registry.publish(t, padded(inner))
		}, want: "a layer descriptor has another media type"},
		"large zstd window": {prepare: func() {
			image := registry.newImage(t)
			layer := tarFile(t, "file", make([]byte, 1<<20))
			image.config.RootFS.DiffIDs = []digest.Digest{digest.FromBytes(layer)}
			image.layers = []ocispec.Descriptor{registry.add(ocispec.MediaTypeImageLayerZstd, zstdFrame(t, 2*maxWindow, layer))}
			registry.publish(t, image)
		}, want: "zstd window"},
		"configuration without layers": {prepare: func() {
			image := padded()
			image.config.RootFS.Type = "none"
			registry.publish(t, image)
		}, want: "lists no layers"},
		"layer without a size": {prepare: func() {
			image := padded()
			image.layers[0].Size = 0
			registry.publish(t, image)
		}, want: "valid digest and size"},
		"layer with an unknown digest algorithm": {prepare: func() {
			image := padded()
			image.layers[0].Digest = "md5:d41d8cd98f00b204e9800998ecf8427e"
			registry.publish(t, image)
		}, want: "valid digest and size"},
		"other content": {prepare: func() { registry.publish(t, padded()) }, want: "supported format",
			intercept: func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, insideSecret)
				return true
			}},
	} {
		if tt.prepare != nil {
			tt.prepare()
		}
		registry.mutex.Lock()
		registry.intercept = tt.intercept
		registry.mutex.Unlock()
		request.Store(0)
		_, err := f.pull(t, registry.host+"/team/app:1")
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), insideSecret) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		const buffered = 16 << 20 // bytes that the sockets on both sides buffer
		if n := request.Load(); n > maxDocument+buffered {
			t.Errorf("%s: the registry sent %d bytes", name, n)
		}
		registry.mutex.Lock()
		registry.intercept = nil
		registry.mutex.Unlock()
	}
	if blobs, leases := f.contents(t); len(blobs) > 0 || leases > 0 {
		t.Errorf("rejected pulls leave the blobs %v and %d leases", blobs, leases)
	}
}
