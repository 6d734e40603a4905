package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// password is a secret in the environment of Alice's images. Mallory must not be able to read it.
const password = "correct-horse-battery-staple"

// builtImage is an image with a password in its environment. The fields contain the image's digest,
// manifest and configuration as a registry stores them.
type builtImage struct {
	v1.Image
	digest           string
	manifest, config string
}

func build(t *testing.T) builtImage {
	t.Helper()
	plain, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Config(mutate.MediaType(plain, types.OCIManifestSchema1), v1.Config{Env: []string{"PASSWORD=" + password}})
	if err != nil {
		t.Fatal(err)
	}
	b := builtImage{Image: image}
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b.digest, b.manifest, b.config = digest.String(), string(manifest), string(config)
	return b
}

// stream creates an image stream as a user.
func (s *stage) stream(user *kit.User, project, name string) {
	user.May("POST", kit.GroupPath(imageGroup, project, "imagestreams"), "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: "+name+"}}")
}

// mapping returns an ImageStreamMapping for the tag "latest" of a stream. change, if not nil,
// modifies the mapping's image.
func mapping(t *testing.T, stream, digest, reference string, change func(*imagev1.Image)) string {
	t.Helper()
	m := imagev1.ImageStreamMapping{Tag: "latest"}
	m.APIVersion, m.Kind, m.Name = "image.openshift.io/v1", "ImageStreamMapping", stream
	m.Image.Name, m.Image.DockerImageReference = digest, reference
	if change != nil {
		change(&m.Image)
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// proof adds the image's manifest and configuration to an image record, to prove that the client
// has them.
func (b builtImage) proof(image *imagev1.Image) {
	image.DockerImageManifest, image.DockerImageManifestMediaType, image.DockerImageConfig = b.manifest, string(types.OCIManifestSchema1), b.config
}

// hidden fails the test if Mallory sees one of the strings in any view of her image stream "copy".
func (s *stage) hidden(t *testing.T, digest string, texts ...string) {
	t.Helper()
	for _, view := range []string{"imagestreams/copy", "imagestreams/copy/layers", "imagestreamtags/copy:latest", "imagetags/copy:latest", "imagestreamimages/copy@" + digest,
		"imagestreamtags", "imagetags"} {
		response, _ := s.mallory.Try("GET", kit.GroupPath(imageGroup, s.evil, view), "")
		for _, text := range texts {
			if strings.Contains(response, text) {
				t.Errorf("mallory reads %q in %s:\n%s", text, view, response)
			}
		}
	}
}

// pull sends a request to the registry with a service account token. It returns the status code and
// the body.
func (s *stage) pull(t *testing.T, account, project, method, path string) (int, string) {
	t.Helper()
	token := strings.TrimSpace(s.OC("create", "token", account, "-n", project))
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.Address.String()+":5000"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("any", token)
	resp, err := (&http.Client{Transport: s.transport()}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// layer returns the digest of the image's first layer, which Mallory must not be able to read
// either.
func (b builtImage) layer(t *testing.T) string {
	t.Helper()
	layers, err := b.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestMappingWithoutManifestShowsNoImageOfAnotherProject(t *testing.T) {
	for _, first := range []string{"alice", "mallory"} {
		t.Run(first+" comes first", func(t *testing.T) {
			s := tenants(t)
			image := build(t)
			s.stream(s.alice, s.shop, "app")
			s.stream(s.mallory, s.evil, "copy")
			ownMapping := mapping(t, "app", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof)
			foreignMapping := mapping(t, "copy", image.digest, "evil.example.com/copy@"+image.digest, nil)
			if first == "alice" {
				s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), ownMapping)
			}
			s.mallory.May("POST", kit.GroupPath(imageGroup, s.evil, "imagestreammappings"), foreignMapping)
			if first == "mallory" {
				s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), ownMapping)
			}
			s.hidden(t, image.digest, password, image.layer(t))
			if status, body := s.pull(t, "builder", s.evil, "GET", "/v2/"+s.evil+"/copy/manifests/latest"); status == http.StatusOK {
				t.Errorf("mallory pulls the manifest: %s", body)
			}
			if got := s.alice.May("GET", kit.GroupPath(imageGroup, s.shop, "imagestreamtags/app:latest"), ""); !strings.Contains(got, password) || strings.Contains(got, "evil.example.com") {
				t.Errorf("alice's tag is\n%s", got)
			}
			record := s.OC("get", "image", image.digest, "-o", "json")
			if !strings.Contains(record, password) || strings.Contains(record, "evil.example.com") {
				t.Errorf("the record of alice's image is\n%s", record)
			}
			// The tag must still return the content that Mallory sent.
			if got := s.mallory.May("GET", kit.GroupPath(imageGroup, s.evil, "imagestreamtags/copy:latest"), ""); !strings.Contains(got, "evil.example.com/copy@"+image.digest) {
				t.Errorf("mallory's tag is\n%s", got)
			}
		})
	}
}

func TestMappingDoesNotChangeRecordOfOtherProject(t *testing.T) {
	s := tenants(t)
	image := build(t)
	s.stream(s.alice, s.shop, "app")
	s.stream(s.mallory, s.evil, "copy")
	// Mallory has the manifest, like every client of a public image. She adds forged content to the
	// image record.
	s.mallory.May("POST", kit.GroupPath(imageGroup, s.evil, "imagestreammappings"), mapping(t, "copy", image.digest, "evil.example.com/copy:latest", func(record *imagev1.Image) {
		record.DockerImageManifest, record.DockerImageManifestMediaType = image.manifest, string(types.OCIImageIndex)
		record.DockerImageConfig = `{"config":{"User":"0","Labels":{"forged":"yes"}}}`
		record.DockerImageMetadata.Raw = []byte(`{"Config":{"Labels":{"forged":"yes"}}}`)
		record.Labels = map[string]string{"forged": "yes"}
		record.Annotations = map[string]string{"openshift.io/image.managed": "true", "image.openshift.io/manifestBlobStored": "true", "forged": "yes"}
		record.Signatures = []imagev1.ImageSignature{{Type: "atomic", Content: []byte("forged")}}
	}))
	record := s.OC("get", "image", image.digest, "-o", "json")
	for _, forged := range []string{"forged", "image.managed", "manifestBlobStored", string(types.OCIImageIndex)} {
		if strings.Contains(record, forged) {
			t.Errorf("the record has %q:\n%s", forged, record)
		}
	}
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), mapping(t, "app", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof))
	if got := s.alice.May("GET", kit.GroupPath(imageGroup, s.shop, "imagestreamtags/app:latest"), ""); !strings.Contains(got, "PASSWORD=") {
		t.Errorf("the record of alice's image was not completed:\n%s", got)
	}
	if got := s.OC("get", "image", image.digest, "-o", "jsonpath={.dockerImageManifestMediaType}"); got != string(types.OCIManifestSchema1) {
		t.Errorf("the manifest has the type %q", got)
	}
}

func TestIndexShowsNoImageOfAnotherProject(t *testing.T) {
	s := tenants(t)
	image := build(t)
	s.stream(s.alice, s.shop, "app")
	s.stream(s.mallory, s.evil, "copy")
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), mapping(t, "app", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof))
	index, err := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image.Image}), types.OCIImageIndex).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image.Image}), types.OCIImageIndex).Digest()
	if err != nil {
		t.Fatal(err)
	}
	s.mallory.May("POST", kit.GroupPath(imageGroup, s.evil, "imagestreammappings"),
		mapping(t, "copy", parsed.String(), "evil.example.com/copy@"+parsed.String(), func(image *imagev1.Image) {
			image.DockerImageManifest, image.DockerImageManifestMediaType = string(index), string(types.OCIImageIndex)
		}))
	s.hidden(t, image.digest, password, image.layer(t))
	if status, body := s.pull(t, "builder", s.evil, "GET", "/v2/"+s.evil+"/copy/manifests/"+image.digest); status == http.StatusOK {
		t.Errorf("mallory pulls the manifest of an image that her index names: %s", body)
	}
}

func TestMappingFollowsRightsOfItsAuthor(t *testing.T) {
	s := tenants(t)
	image := build(t)
	s.stream(s.alice, s.shop, "app")
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), mapping(t, "app", image.digest, "registry.example.com/shop/app@"+image.digest, image.proof))
	// The stream contains the image, so its author can tag the image again without sending the
	// manifest.
	second := strings.Replace(mapping(t, "app", image.digest, "", nil), `"tag":"latest"`, `"tag":"again"`, 1)
	s.alice.May("POST", kit.GroupPath(imageGroup, s.shop, "imagestreammappings"), second)
	got := s.alice.May("GET", kit.GroupPath(imageGroup, s.shop, "imagestreamtags/app:again"), "")
	if want := fmt.Sprintf("docker-registry.default.svc:5000/%s/app@%s", s.shop, image.digest); !strings.Contains(got, want) || !strings.Contains(got, password) {
		t.Errorf("the tag is not at %s, or without its metadata:\n%s", want, got)
	}
}
