package registry

import (
	"io"
	"net/http"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

// blobResponse contains the parts of a response that clients read.
type blobResponse struct {
	Status int
	Header http.Header
	Body   string
}

func (g *testRegistry) fetch(method, path string, header http.Header) blobResponse {
	g.t.Helper()
	response := g.send(method, path, header, nil)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	response.Header.Del("Date")
	return blobResponse{response.StatusCode, response.Header, string(body)}
}

func TestBlobsAreServedLikeDistribution(t *testing.T) {
	dir := t.TempDir()
	headers := configuration.HTTP{Headers: http.Header{"X-Content-Type-Options": {"nosniff"}}}
	registry := testRegistryWith(t, &configuration.Configuration{Storage: Directory(dir, false), HTTP: headers})
	reference := testRegistryWith(t, &configuration.Configuration{Storage: Directory(dir, false), HTTP: headers})
	reference.files = false
	layer := registry.layer()
	registry.push("shop/app", layer)
	id := digestOf(t, layer)
	blob := "/v2/shop/app/blobs/" + id
	for name, request := range map[string]struct {
		path, method string
		header       http.Header
	}{
		"a blob":                                {blob, http.MethodGet, nil},
		"its header":                            {blob, http.MethodHead, nil},
		"its middle":                            {blob, http.MethodGet, http.Header{"Range": {"bytes=10-19"}}},
		"its end":                               {blob, http.MethodGet, http.Header{"Range": {"bytes=-5"}}},
		"two ranges beyond the end":             {blob, http.MethodGet, http.Header{"Range": {"bytes=100000-,200000-"}}},
		"a range with the ETag of another blob": {blob, http.MethodGet, http.Header{"Range": {"bytes=10-19"}, "If-Range": {`"other"`}}},
		"a blob that the client has":            {blob, http.MethodGet, http.Header{"If-None-Match": {`"` + id + `"`}}},
		"a blob that was never pushed":          {"/v2/shop/app/blobs/" + digest.FromString("other").String(), http.MethodGet, nil},
		"a blob of a missing repository":        {"/v2/shop/other/blobs/" + id, http.MethodGet, nil},
		"an invalid digest":                     {"/v2/shop/app/blobs/sha256:1", http.MethodGet, nil},
		"an unsupported method":                 {blob, http.MethodPut, nil},
	} {
		if request.header == nil {
			request.header = http.Header{}
		}
		got, want := registry.fetch(request.method, request.path, request.header.Clone()), reference.fetch(request.method, request.path, request.header.Clone())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-distribution +ours):\n%s", name, diff)
		}
	}
	if got := registry.fetch(http.MethodGet, blob, http.Header{"If-Match": {`"other"`}}); got.Status != http.StatusPreconditionFailed || got.Body != "" {
		// With this header, distribution announces a body but sends none.
		t.Errorf("If-Match with the ETag of another blob: %+v", got)
	}
}
