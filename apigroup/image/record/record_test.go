package record

import (
	"errors"
	"strings"
	"testing"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// content returns an image's content in the form in which a registry stores it.
func content(t *testing.T, image v1.Image) Content {
	t.Helper()
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	mediaType, err := image.MediaType()
	if err != nil {
		t.Fatal(err)
	}
	return Content{MediaType: string(mediaType), Manifest: manifest, Config: config}
}

func TestRecordContainsConfiguration(t *testing.T) {
	plain, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Config(plain, v1.Config{Env: []string{"A=1"}, Cmd: []string{"run"}, User: "1001", Labels: map[string]string{"io.openshift.tags": "ruby"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, mediaType := range []types.MediaType{types.DockerManifestSchema2, types.OCIManifestSchema1} {
		c := content(t, mutate.MediaType(image, mediaType))
		image, err := Of(c)
		if err != nil {
			t.Fatal(err)
		}
		metadata, err := Metadata(image)
		if err != nil {
			t.Fatal(err)
		}
		if image.Name != Digest(c.Manifest) || image.DockerImageManifest != string(c.Manifest) || image.DockerImageManifestMediaType != string(mediaType) {
			t.Errorf("%s: the record belongs to another image", mediaType)
		}
		if config := metadata.Config; config == nil || config.User != "1001" || config.Env[0] != "A=1" || config.Labels["io.openshift.tags"] != "ruby" {
			t.Errorf("%s: configuration %+v", mediaType, config)
		}
		size := int64(len(c.Config))
		for _, layer := range image.DockerImageLayers {
			size += layer.LayerSize
		}
		if len(image.DockerImageLayers) != 2 || metadata.Size != size {
			t.Errorf("%s: %d layers, size %d, want 2 and %d", mediaType, len(image.DockerImageLayers), metadata.Size, size)
		}
		if id, err := ConfigDigest(c.Manifest); err != nil || id != metadata.ID {
			t.Errorf("%s: configuration %q, %v, want %q", mediaType, id, err, metadata.ID)
		}
	}
}

func TestRecordOfIndexListsImages(t *testing.T) {
	child, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: child, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}}})
	manifest, err := index.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := Of(Content{MediaType: string(types.OCIImageIndex), Manifest: manifest})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := child.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(image.DockerImageManifests) != 1 {
		t.Fatalf("%d images, want 1", len(image.DockerImageManifests))
	}
	if got := image.DockerImageManifests[0]; got.Digest != digest.String() || got.Architecture != "arm64" || got.OS != "linux" || got.Variant != "v8" {
		t.Errorf("image %+v", got)
	}
}

func TestOtherManifestsAreRejected(t *testing.T) {
	for mediaType, want := range map[types.MediaType]string{
		types.DockerManifestSchema1Signed: "schema 1", types.DockerManifestSchema1: "schema 1", "text/html": "an unknown type",
		types.DockerManifestSchema2: "parse manifest", types.OCIImageIndex: "parse index",
	} {
		if _, err := Of(Content{MediaType: string(mediaType), Manifest: []byte("<html>")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mediaType, err)
		}
	}
}

func TestExpandingJSONIsRejected(t *testing.T) {
	bomb := []byte(`{"layers": [{}` + strings.Repeat(",{}", maxValues) + `]}`)
	_, ofManifest := Of(Content{MediaType: string(types.OCIManifestSchema1), Manifest: bomb})
	_, ofIndex := Of(Content{MediaType: string(types.OCIImageIndex), Manifest: bomb})
	_, ofConfig := Of(Content{MediaType: string(types.OCIManifestSchema1), Manifest: []byte("{}"), Config: bomb})
	_, ofDigest := ConfigDigest(bomb)
	for _, err := range []error{ofManifest, ofIndex, ofConfig, ofDigest} {
		if limit := (*jsonlimit.Error)(nil); !errors.As(err, &limit) {
			t.Error(err)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add(string(types.OCIManifestSchema1), []byte(`{"schemaVersion":2,"config":{"digest":"sha256:00","size":1},"layers":[{}]}`), []byte(`{"config":{"Env":["a"]}}`))
	f.Add(string(types.OCIImageIndex), []byte(`{"manifests":[{"platform":null}]}`), []byte(nil))
	f.Fuzz(func(t *testing.T, mediaType string, manifest, config []byte) {
		image, err := Of(Content{MediaType: mediaType, Manifest: manifest, Config: config})
		if err == nil && image.Name != Digest(manifest) {
			t.Errorf("name %q", image.Name)
		}
	})
}

func TestReferences(t *testing.T) {
	ref, err := reference.ParseNormalizedNamed("any")
	if err != nil {
		t.Fatal(err)
	}
	public := reference.Domain(ref)
	const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for text, want := range map[string]Reference{
		"busybox":                         {public, "library/busybox", "", ""},
		"centos/ruby:2.5":                 {public, "centos/ruby", "2.5", ""},
		"registry.example.com:5000/a/b/c": {"registry.example.com:5000", "a/b/c", "", ""},
		"localhost/app:v1@" + id:          {"localhost", "app", "v1", id},
		"docker-registry.default.svc:5000/shop/app@" + id: {"docker-registry.default.svc:5000", "shop/app", "", id},
	} {
		if got, err := ParseReference(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := ParseReference("Not A Name"); err == nil {
		t.Error("an invalid name is accepted")
	}
}
