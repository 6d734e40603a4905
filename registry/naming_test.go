package registry

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// do sends a request to the registry and returns the response with its body.
func (g *testRegistry) do(method, address, contentType string, body []byte) (*http.Response, string) {
	g.t.Helper()
	if !strings.Contains(address, "://") {
		address = "http://" + g.host + address
	}
	request, err := http.NewRequestWithContext(g.t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response, string(content)
}

// pushBlob uploads a blob under a digest and returns the last response.
func (g *testRegistry) pushBlob(repository string, id digest.Digest, content []byte) *http.Response {
	g.t.Helper()
	started, body := g.do(http.MethodPost, "/v2/"+repository+"/blobs/uploads/", "", nil)
	at, err := started.Location()
	if err != nil {
		g.t.Fatalf("%v %s", err, body)
	}
	query := at.Query()
	query.Set("digest", id.String())
	at.RawQuery = query.Encode()
	response, body := g.do(http.MethodPut, at.String(), "application/octet-stream", content)
	if response.StatusCode != http.StatusCreated {
		g.t.Fatalf("push of blob %s: %s %s", id, response.Status, body)
	}
	return response
}

// manifestOf returns the manifest of an image with a configuration and a layer.
func manifestOf(t *testing.T, config []byte, layer ocispec.Descriptor, algorithm digest.Algorithm) []byte {
	t.Helper()
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: algorithm.FromBytes(config), Size: int64(len(config))},
		Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

func TestContentIsNamedByDigestOfClient(t *testing.T) {
	g := newTestRegistry(t)
	config, layer := []byte(`{"architecture":"amd64","os":"linux"}`), []byte("a layer")
	names := []digest.Digest{digest.SHA512.FromBytes(config), digest.SHA512.FromBytes(layer)}
	for i, content := range [][]byte{config, layer} {
		resp := g.pushBlob("shop/app", names[i], content)
		at, err := url.Parse(resp.Header.Get("Location"))
		if got := resp.Header.Get("Docker-Content-Digest"); err != nil || got != names[i].String() || !strings.HasSuffix(at.Path, names[i].String()) {
			t.Errorf("a pushed blob has the digest %q at %q", got, resp.Header.Get("Location"))
		}
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			read, body := g.do(method, "/v2/shop/app/blobs/"+names[i].String(), "", nil)
			if got := read.Header.Get("Docker-Content-Digest"); read.StatusCode != http.StatusOK || got != names[i].String() || method == http.MethodGet && body != string(content) {
				t.Errorf("%s: %s, a blob has the digest %q and the content %q", method, read.Status, got, body)
			}
		}
	}
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: names[1], Size: int64(len(layer))}
	manifest := manifestOf(t, config, desc, digest.SHA512)
	if resp, body := g.do(http.MethodPut, "/v2/shop/app/manifests/latest", ocispec.MediaTypeImageManifest, manifest); resp.StatusCode != http.StatusCreated {
		t.Fatalf("push of a manifest: %s %s", resp.Status, body)
	}
	mapping, err := mappingOf(t.Context(), g.store, target{namespace: "shop", stream: "app", reference: "latest"},
		record.Content{MediaType: ocispec.MediaTypeImageManifest, Manifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	if image := mapping.Image; image.DockerImageConfig != "" || len(image.DockerImageLayers) != 1 || image.DockerImageLayers[0].Name != names[1].String() {
		t.Errorf("the record is %+v", image)
	}
	// The digests in the Image object keep the blobs. When the Image object is removed, the blobs
	// are removed too.
	images := map[string][]string{mapping.Image.Name: record.Blobs(&mapping.Image)}
	later := time.Now().Add(2 * uploadAge)
	if garbage := g.collect(collection{request: record.GarbageRequest{Everything: true}, images: images, now: later}); len(garbage.Blobs) > 0 {
		t.Errorf("a prune removed %v of an image in use", garbage.Blobs)
	}
	request := record.GarbageRequest{Images: []record.GarbageImage{{Digest: mapping.Image.Name, Repositories: []string{"shop/app"}, Blobs: images[mapping.Image.Name]}}}
	if garbage := g.collect(collection{request: request, now: later}); len(garbage.Blobs) != 3 {
		t.Errorf("a prune of the image removed %v", garbage.Blobs)
	}
}

func TestManifestIsServedToClientsThatAcceptAnything(t *testing.T) {
	g := newTestRegistry(t)
	id := g.push("shop/app", g.layer())
	for name, accept := range map[string][]string{"no header": nil, "anything": {"*/*"}, "a list": {"text/html, */*;q=0.8"}} {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.host+"/v2/shop/app/manifests/latest", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header["Accept"] = accept
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := response.Header.Get("Docker-Content-Digest"); response.StatusCode != http.StatusOK || got != id {
				t.Errorf("%s, %s: %s, manifest %q, want %q", name, method, response.Status, got, id)
			}
		}
	}
}

func TestNondistributableLayersNeedNoContent(t *testing.T) {
	g := newTestRegistry(t)
	config := []byte(`{"architecture":"amd64","os":"windows"}`)
	g.pushBlob("shop/app", digest.FromBytes(config), config)
	layer := ocispec.Descriptor{
		MediaType: "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", Digest: digest.FromString("elsewhere"), Size: 9,
		URLs: []string{"https://layers.example.com/elsewhere"},
	}
	manifest := manifestOf(t, config, layer, digest.Canonical)
	if resp, body := g.do(http.MethodPut, "/v2/shop/app/manifests/latest", ocispec.MediaTypeImageManifest, manifest); resp.StatusCode != http.StatusCreated {
		t.Errorf("%s %s", resp.Status, body)
	}
	if read, _ := g.do(http.MethodGet, "/v2/shop/app/blobs/"+layer.Digest.String(), "", nil); read.StatusCode != http.StatusNotFound {
		t.Errorf("the layer itself: %s", read.Status)
	}
	later := time.Now().Add(2 * uploadAge)
	images := map[string][]string{record.Digest(manifest): {digest.FromBytes(config).String(), layer.Digest.String()}}
	if garbage := g.collect(collection{request: record.GarbageRequest{Everything: true}, images: images, now: later}); len(garbage.Blobs) > 0 {
		t.Errorf("a prune removed %v", garbage.Blobs)
	}
	layer.URLs = []string{"file:///etc/shadow"}
	resp, body := g.do(http.MethodPut, "/v2/shop/app/manifests/latest", ocispec.MediaTypeImageManifest, manifestOf(t, config, layer, digest.Canonical))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "MANIFEST_INVALID") {
		t.Errorf("a URL that is not allowed: %s %s", resp.Status, body)
	}
}
