package registry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestClientDeletesTag(t *testing.T) {
	p := newProject(t)
	options := p.options(p.token)
	image := p.noise(1000)
	for _, tag := range []string{"app:v1", "app:v2"} {
		if err := remote.Write(p.tag(p.direct(), tag), image, options...); err != nil {
			t.Fatal(err)
		}
	}
	path := "/v2/" + p.Namespace + "/app/manifests/"
	reader := p.account("reader", "view")
	for _, tt := range []struct {
		what, token, tag string
		want             int
	}{
		{"without permission", reader, "v1", http.StatusForbidden},
		{"with permission", p.token, "v1", http.StatusAccepted},
		{"again", p.token, "v1", http.StatusNotFound},
		{"of a missing tag", p.token, ".v1", http.StatusNotFound},
	} {
		if status, body := p.request(http.MethodDelete, path+tt.tag, tt.token, ""); status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.what, status, body, tt.want)
		}
	}
	if status, body := p.request(http.MethodGet, path+"v1", p.token, ""); status != http.StatusNotFound {
		t.Errorf("the removed tag: %d %s", status, body)
	}
	if tags := p.OC("get", "istag", "-o", "name"); !strings.Contains(tags, "app:v2") || strings.Contains(tags, "app:v1") {
		t.Errorf("the stream has %s", tags)
	}
	// Without an Accept header, the registry must return the image's manifest.
	name, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"v2", name.String()} {
		if status, body := p.request(http.MethodGet, path+reference, p.token, ""); status != http.StatusOK || body != string(raw) {
			t.Errorf("%s: %d %s", reference, status, body)
		}
	}
}
