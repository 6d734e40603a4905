package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	other "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// TestPushReusesContentThatStreamServes pushes images to a stream that refers to a base image in
// another repository or registry. When a client checks for the base layer, the registry responds
// that the layer exists, so the client does not send it.
func TestPushReusesContentThatStreamServes(t *testing.T) {
	for name, place := range map[string]func(t *testing.T, g *testRegistry) (*testRegistry, source){
		"another repository": func(_ *testing.T, g *testRegistry) (*testRegistry, source) {
			return g, source{repository: "base/image"}
		},
		"another registry": func(t *testing.T, _ *testRegistry) (*testRegistry, source) {
			far := httptest.NewServer(other.New())
			t.Cleanup(far.Close)
			registry := &testRegistry{t: t, host: strings.TrimPrefix(far.URL, "http://")}
			return registry, source{remote: registry.host + "/base/image", insecure: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, _ := project(t, Unlimited, diskspace.Reserve{}, t.TempDir())
			s := serverWith(someDigest, "elsewhere.example.com/base/image@"+someDigest)
			registry, at := place(t, g)
			base, own := g.layer(), g.layer()
			registry.push("base/image", base)
			id := digestOf(t, base)
			s.blobs.add("shop/app", []string{id}, at)
			image := g.image(base, own)
			raw, err := image.RawManifest()
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.RawConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			g.pushBlob("shop/app", digest.FromBytes(config), config)
			g.push("shop/app", own)
			mediaType, err := image.MediaType()
			if err != nil {
				t.Fatal(err)
			}
			put := func() (*http.Response, string) {
				return g.do(http.MethodPut, "/v2/shop/app/manifests/v1", string(mediaType), raw)
			}
			if resp, body := put(); resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest {
				t.Fatalf("without the base layer: %s %s", resp.Status, body)
			}
			r := httptest.NewRequest(http.MethodPut, "/v2/shop/app/manifests/v1", nil)
			if err := s.addParts(r, g.store, target{namespace: "shop", stream: "app", reference: "v1"}, raw); err != nil {
				t.Fatal(err)
			}
			if resp, body := put(); resp.StatusCode != http.StatusCreated {
				t.Errorf("push: %s %s", resp.Status, body)
			}
			if !g.has("shop/app", digestOf(t, image)) {
				t.Error("the image is not complete")
			}
		})
	}
}
