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

// TestPushReusesWhatStreamServes pushes images to a stream that refers to their base image in
// another place. A client that requests the base layer gets the response that it exists, and
// doesn't send it.
func TestPushReusesWhatStreamServes(t *testing.T) {
	for name, place := range map[string]func(t *testing.T, g *testRegistry) (*testRegistry, source){
		"another repository": func(_ *testing.T, g *testRegistry) (*testRegistry, source) {
			return g, source{repository: "base/image"}
		},
		"another registry": func(t *testing.T, _ *testRegistry) (*testRegistry, source) {
			far := httptest.NewServer(other.New())
			t.Cleanup(far.Close)
			there := &testRegistry{t: t, host: strings.TrimPrefix(far.URL, "http://")}
			return there, source{remote: there.host + "/base/image", insecure: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, _ := project(t, Unlimited, diskspace.Reserve{}, t.TempDir())
			s := serverWith(someDigest, "elsewhere.example.com/base/image@"+someDigest)
			there, at := place(t, g)
			base, own := g.layer(), g.layer()
			there.push("base/image", base)
			id := digestOf(t, base)
			s.blobs.add("shop/app", []string{id}, at)
			made := g.image(base, own)
			raw, err := made.RawManifest()
			if err != nil {
				t.Fatal(err)
			}
			config, err := made.RawConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			g.pushBlob("shop/app", digest.FromBytes(config), config)
			g.push("shop/app", own)
			mediaType, err := made.MediaType()
			if err != nil {
				t.Fatal(err)
			}
			put := func() (*http.Response, string) {
				return g.do(http.MethodPut, "/v2/shop/app/manifests/v1", string(mediaType), raw)
			}
			if pushed, body := put(); pushed.StatusCode != http.StatusNotFound && pushed.StatusCode != http.StatusBadRequest {
				t.Fatalf("without the base layer: %s %s", pushed.Status, body)
			}
			r := httptest.NewRequest(http.MethodPut, "/v2/shop/app/manifests/v1", nil)
			if err := s.addParts(r, g.store, target{namespace: "shop", stream: "app", reference: "v1"}, raw); err != nil {
				t.Fatal(err)
			}
			if pushed, body := put(); pushed.StatusCode != http.StatusCreated {
				t.Errorf("push: %s %s", pushed.Status, body)
			}
			if !g.has("shop/app", digestOf(t, made)) {
				t.Error("the image is not complete")
			}
		})
	}
}
