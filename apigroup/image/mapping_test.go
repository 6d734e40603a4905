package image

import (
	"context"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// claimOf returns an image with its manifest and configuration, and with fields that the manifest
// and the configuration do not prove.
func claimOf(t *testing.T) *imagev1.Image {
	t.Helper()
	plain, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Config(mutate.MediaType(plain, types.OCIManifestSchema1), v1.Config{Labels: map[string]string{"vendor": "Example"}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return &imagev1.Image{
		ObjectMeta: metav1.ObjectMeta{
			Name: record.Digest(manifest), Labels: map[string]string{"approved": "true"},
			Annotations: map[string]string{"example.com/scan": "passed", record.Managed: "true"},
		},
		DockerImageReference: "registry.example.com/app@" + record.Digest(manifest),
		DockerImageManifest:  string(manifest), DockerImageManifestMediaType: string(types.OCIManifestSchema1), DockerImageConfig: string(config),
		DockerImageMetadata: runtime.RawExtension{Raw: []byte(`{"Config":{"Labels":{"vendor":"Trusted"}}}`)},
		DockerImageLayers:   []imagev1.ImageLayer{{Name: id}},
		Signatures:          []imagev1.ImageSignature{{Type: "atomic", Content: []byte("forged")}},
	}
}

func TestMappingStoresOnlyProvenContent(t *testing.T) {
	image, other, lied := claimOf(t), claimOf(t), claimOf(t)
	other.DockerImageConfig = `{"config":{"Labels":{"vendor":"Trusted"}}}`
	lied.DockerImageManifestMediaType = string(types.OCIImageIndex)
	for name, tt := range map[string]struct {
		image  *imagev1.Image
		vendor string
	}{"with its manifest": {image, "Example"}, "with another's configuration": {other, ""}, "with another type": {lied, "Example"}} {
		image, err := verify(tt.image)
		if err != nil {
			t.Fatal(err)
		}
		metadata, err := record.Metadata(image)
		if err != nil {
			t.Fatal(err)
		}
		vendor := ""
		if metadata.Config != nil {
			vendor = metadata.Config.Labels["vendor"]
		}
		if vendor != tt.vendor || len(image.DockerImageLayers) != 2 || image.DockerImageManifestMediaType != string(types.OCIManifestSchema1) {
			t.Errorf("%s: vendor %q, %d layers, type %q, want %q and 2", name, vendor, len(image.DockerImageLayers), image.DockerImageManifestMediaType, tt.vendor)
		}
		if image.Name != tt.image.Name || image.DockerImageReference != tt.image.DockerImageReference || image.Annotations[record.ReferenceClaimed] != "true" {
			t.Errorf("%s: image %q at %q with annotations %v", name, image.Name, image.DockerImageReference, image.Annotations)
		}
		if image.Annotations["example.com/scan"] != "" || image.Annotations[record.Managed] != "" || len(image.Labels)+len(image.Signatures) > 0 {
			t.Errorf("%s: annotations %v, labels %v, %d signatures", name, image.Annotations, image.Labels, len(image.Signatures))
		}
	}
}

func TestMappingRejectsForeignManifest(t *testing.T) {
	mapping := &imagev1.ImageStreamMapping{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Image: *claimOf(t)}
	if problems := validateMapping(mapping); len(problems) != 0 {
		t.Errorf("its own manifest: %v", problems)
	}
	mapping.Image.Name = id
	if problems := validateMapping(mapping); len(problems) != 1 || !strings.Contains(problems[0].Error(), "image.metadata.name") {
		t.Errorf("manifest of another image: %v", problems)
	}
}

func TestMappingOfImageWriterIsStoredUnchanged(t *testing.T) {
	rights := map[string]string{"registry": "update", "admin": "create", "developer": "get"}
	mappings := &mappings{authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() == "images" && a.GetNamespace() == "" && rights[a.GetUser().GetName()] == a.GetVerb() {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	mapping := &imagev1.ImageStreamMapping{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Image: *claimOf(t)}
	for name, want := range map[string]bool{"registry": true, "admin": true, "developer": false} {
		image, err := mappings.recordOf(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}), mapping)
		if err != nil {
			t.Fatal(err)
		}
		if got := image.Labels["approved"] == "true" && len(image.Signatures) == 1; got != want {
			t.Errorf("%s is trusted: %v, want %v", name, got, want)
		}
		if metadata, err := record.Metadata(image); err != nil || metadata.Config == nil || metadata.Config.Labels["vendor"] != "Example" {
			t.Errorf("the metadata from %s does not match the manifest: %s", name, image.DockerImageMetadata.Raw)
		}
	}
}

func TestMappingDefaultsToClusterRegistry(t *testing.T) {
	options := Options{Registry: "registry:5000"}
	for want, image := range map[string]imagev1.Image{
		"registry:5000/shop/app@" + id: {ObjectMeta: metav1.ObjectMeta{Name: id}},
		"example.com/app:v1":           {ObjectMeta: metav1.ObjectMeta{Name: id}, DockerImageReference: "example.com/app:v1"},
	} {
		mapping := &imagev1.ImageStreamMapping{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Image: image}
		options.setPlace(mapping)
		if got := mapping.Image.DockerImageReference; got != want {
			t.Errorf("the image is at %q, want %q", got, want)
		}
		if problems := append(validateMapping(mapping), options.checkPlace(mapping)...); len(problems) > 0 {
			t.Errorf("%s: %v", want, problems)
		}
	}
}
