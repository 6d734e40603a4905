package attack

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// transport returns a transport for the cluster's registry. These tests do not verify the
// registry's certificate.
func (s *stage) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // #nosec G402
}

// push pushes an image to a stream's tag as a project's builder service account, without retries.
func (s *stage) push(t *testing.T, project, ref string, image v1.Image) error {
	t.Helper()
	token := strings.TrimSpace(s.OC("create", "token", "builder", "-n", project))
	tag, err := name.NewTag(s.Address.String() + ":5000/" + project + "/" + ref)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Write(tag, image, remote.WithTransport(s.transport()), remote.WithContext(t.Context()),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "any", Password: token})),
		remote.WithRetryPredicate(func(error) bool { return false }), remote.WithRetryStatusCodes())
}

// noise returns an image with one layer of random bytes.
func noise(t *testing.T, size int64) v1.Image {
	t.Helper()
	image, err := random.Image(size, 1)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestBlobCannotBeMountedFromAnotherProject(t *testing.T) {
	s := tenants(t)
	image := build(t)
	s.waitBuilder(t, s.shop)
	s.waitBuilder(t, s.evil)
	if err := s.push(t, s.shop, "app:latest", image); err != nil {
		t.Fatal(err)
	}
	layer := image.layer(t)
	for name, path := range map[string]string{
		"mount":              "/v2/" + s.evil + "/copy/blobs/uploads/?mount=" + layer + "&from=" + s.shop + "/app",
		"mount without from": "/v2/" + s.evil + "/copy/blobs/uploads/?mount=" + layer,
	} {
		if status, body := s.pull(t, "builder", s.evil, "POST", path); status != http.StatusAccepted {
			t.Errorf("%s: status %d, want an upload: %s", name, status, body)
		}
	}
	for _, path := range []string{"/copy/blobs/" + layer, "/copy/manifests/" + image.digest, "/copy/referrers/" + image.digest} {
		if status, body := s.pull(t, "builder", s.evil, "GET", "/v2/"+s.evil+path); status == http.StatusOK && strings.Contains(body, image.digest) || status == http.StatusOK && !strings.Contains(path, "referrers") {
			t.Errorf("GET %s: status %d: %s", path, status, body)
		}
	}
	for _, path := range []string{"/app/blobs/" + layer, "/app/manifests/latest", "/app/referrers/" + image.digest, "/app/tags/list"} {
		if status, _ := s.pull(t, "builder", s.evil, "GET", "/v2/"+s.shop+path); status != http.StatusForbidden {
			t.Errorf("GET %s of alice's repository: status %d", path, status)
		}
	}
	s.mallory.MayNot("GET", "/apis/image.openshift.io/v1/images/"+image.digest, "", "cannot get")
	s.mallory.MayNot("POST", "/apis/image.openshift.io/v1/imagesignatures", `{"apiVersion":"image.openshift.io/v1","kind":"ImageSignature","metadata":{"name":"`+
		image.digest+`@0123456789abcdef0123456789abcdef"},"type":"atomic","content":"Zm9yZ2Vk"}`, "cannot create")
}

// waitBuilder waits until a new project's builder service account exists.
func (s *stage) waitBuilder(t *testing.T, project string) {
	t.Helper()
	s.OC("wait", "--for=create", "serviceaccount/builder", "-n", project, "--timeout=60s")
}
