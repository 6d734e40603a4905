package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
)

func TestPullThroughLoopEnds(t *testing.T) {
	client := imagefake.NewClientset()
	s := &server{Registry: &Registry{Remotes: remotes()}, name: "registry-of-the-test", images: client.ImageV1()}
	const maximum = 20
	var request atomic.Int32
	var host string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, image := source{remote: host + "/shop/app"}, target{namespace: "shop", stream: "app", digest: someDigest}
		switch {
		case r.URL.Path == "/v2/":
		case request.Add(1) > maximum:
			http.NotFound(w, r)
		case strings.Contains(r.URL.Path, "/manifests/"):
			s.pullThrough(w, r, image, location{digest: someDigest, source: at})
		default:
			s.pullBlobThrough(w, r, nil, image, at)
		}
	}))
	t.Cleanup(front.Close)
	host = strings.TrimPrefix(front.URL, "http://")
	for _, path := range []string{"/v2/shop/app/manifests/" + someDigest, "/v2/shop/app/blobs/" + someDigest} {
		request.Store(0)
		response, err := http.Get(front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		n := request.Load()
		if response.StatusCode != http.StatusForbidden || n < maxReturns || n > 2*maxReturns {
			t.Errorf("%s: %s after %d requests", path, response.Status, n)
		}
	}
}
