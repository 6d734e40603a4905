package record

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/openshift/api/image/docker10"
	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestCompleteDoesNotDependOnOrder(t *testing.T) {
	image, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	of := func(c Content) *imagev1.Image {
		t.Helper()
		image, err := Of(c)
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	full := content(t, image)
	bare := full
	bare.Config = nil
	verified := of(full)
	pushed := of(full)
	pushed.DockerImageManifest, pushed.DockerImageConfig = "", ""
	pushed.Annotations[Managed], pushed.Annotations[ManifestStored] = "true", "true"
	pushed.DockerImageReference = "registry:5000/shop/app@" + verified.Name
	empty := &imagev1.Image{ObjectMeta: verified.ObjectMeta, DockerImageReference: "evil.example.com/app:v1"}
	forged := of(full)
	forged.DockerImageMetadata = runtime.RawExtension{Raw: []byte(`{"Config":{"User":"0"}}`)}
	claimed := of(full)
	claimed.DockerImageReference, claimed.Annotations[ReferenceClaimed] = "evil.example.com/app@"+verified.Name, "true"
	for name, tt := range map[string]struct {
		existing, update *imagev1.Image
		changed          bool
	}{
		"empty, then pushed":                   {empty, pushed, true},
		"forged, then imported":                {forged, verified, true},
		"claimed, then pushed":                 {claimed, pushed, true},
		"without configuration, then with":     {of(bare), verified, true},
		"complete, then the same":              {verified, verified, false},
		"pushed, then the same":                {pushed, pushed, false},
		"complete, then without configuration": {verified, of(bare), false},
		"pushed, then claimed in a mapping":    {pushed, claimed, false},
	} {
		before := tt.existing.DeepCopy()
		got, changed := Complete(tt.existing, tt.update)
		if changed != tt.changed {
			t.Errorf("%s: changed %v, want %v", name, changed, tt.changed)
		}
		if string(got.DockerImageMetadata.Raw) != string(verified.DockerImageMetadata.Raw) || len(got.DockerImageLayers) != 2 || got.DockerImageManifestMediaType != full.MediaType {
			t.Errorf("%s: the record is %+v", name, got)
		}
		if tt.update == pushed && (got.DockerImageReference != pushed.DockerImageReference || got.Annotations[ReferenceClaimed] != "") {
			t.Errorf("%s: the image is at %q, annotations %v", name, got.DockerImageReference, got.Annotations)
		}
		if before.DockerImageReference != tt.existing.DockerImageReference {
			t.Errorf("%s: the stored record was changed", name)
		}
	}
}

func TestCompleteKeepsPushedSizeOfIndex(t *testing.T) {
	child, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: child}).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	of := func(largest int64) *imagev1.Image {
		t.Helper()
		image, err := Of(Content{MediaType: string(types.OCIImageIndex), Manifest: manifest, Largest: largest})
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	size := func(image *imagev1.Image) int64 {
		var metadata docker10.DockerImage
		if metadata, err = Metadata(image); err != nil {
			t.Fatal(err)
		}
		return metadata.Size
	}
	if got, changed := Complete(of(10), of(0)); changed || size(got) != 10 {
		t.Errorf("an import changed the size to %d", size(got))
	}
	if got, changed := Complete(of(0), of(10)); !changed || size(got) != 10 {
		t.Errorf("after a push, the size is %d", size(got))
	}
}

func TestAmbiguousManifestIsRejected(t *testing.T) {
	const config = `"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","size":1}`
	for name, tt := range map[string]struct {
		mediaType types.MediaType
		manifest  string
		want      bool
	}{
		"same media type":            {types.OCIManifestSchema1, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` + config + `,"layers":[]}`, true},
		"no media type":              {types.OCIManifestSchema1, `{"schemaVersion":2,` + config + `,"layers":[]}`, true},
		"another":                    {types.OCIImageIndex, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` + config + `,"layers":[]}`, false},
		"an index by its type only":  {types.OCIImageIndex, `{"schemaVersion":2,` + config + `,"layers":[]}`, false},
		"an image by its type only":  {types.OCIManifestSchema1, `{"schemaVersion":2,"manifests":[]}`, false},
		"both an image and an index": {types.OCIManifestSchema1, `{"schemaVersion":2,"manifests":[],` + config + `,"layers":[]}`, false},
	} {
		if _, err := Of(Content{MediaType: string(tt.mediaType), Manifest: []byte(tt.manifest)}); (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for manifest, want := range map[string]types.MediaType{`{"layers":[]}`: types.OCIManifestSchema1, `{"manifests":[]}`: types.OCIImageIndex,
		`{"mediaType":"application/vnd.docker.distribution.manifest.v2+json"}`: types.DockerManifestSchema2, "<html>": ""} {
		if got := TypeOf([]byte(manifest)); got != string(want) {
			t.Errorf("type of %s is %q, want %q", manifest, got, want)
		}
	}
}
