package registry

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	other "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// remotes returns clients that can reach registries on this machine.
func remotes() *registryclient.Pool {
	return registryclient.NewPool(outbound.New(outbound.Policy{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), 50)
}

// serverWith returns a registry whose shop/app stream contains one image with the given digest and
// reference.
func serverWith(image, reference string) *server {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "v1", Items: []imagev1.TagEvent{{Image: image, DockerImageReference: reference}}}}
	client := imagefake.NewClientset(stream)
	client.PrependReactor("get", "imagestreams", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action.GetSubresource() {
		case "layers":
			return true, &imagev1.ImageStreamLayers{}, nil
		case "secrets":
			return true, &imagev1.SecretList{}, nil
		}
		return false, nil, nil
	})
	return &server{
		Registry: &Registry{Remotes: remotes()}, name: "registry-of-the-test", blobs: newSources(), lookups: make(slots, 1), images: client.ImageV1(),
	}
}

func TestReferrersOfRemoteImageArePulledThrough(t *testing.T) {
	for name, support := range map[string]bool{"with a list of referrers": true, "with a tag of referrers": false} {
		silent := other.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError))
		var forbidden atomic.Bool
		content := other.New(other.WithReferrersSupport(support), silent)
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if forbidden.Load() {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			content.ServeHTTP(w, r)
		}))
		t.Cleanup(far.Close)
		registry := &testRegistry{t: t, host: strings.TrimPrefix(far.URL, "http://")}
		image := registry.push("team/app", registry.layer())
		bill, signature := registry.attach("team/app", image, billType), registry.attach("team/app", image, signatureType)
		s, local := serverWith(image, registry.host+"/team/app@"+image), newTestRegistry(t)
		ask := func(serve func(http.ResponseWriter, *http.Request, *store, target), path string, of target) *httptest.ResponseRecorder {
			of.namespace, of.stream = "shop", "app"
			w := httptest.NewRecorder()
			serve(w, httptest.NewRequest(http.MethodGet, path, nil), local.store, of)
			return w
		}
		referrers := func(query string) (ids []string) {
			w := ask(s.pullReferrers, "/v2/shop/app/referrers/"+image+query, target{digest: image})
			var index ocispec.Index
			if err := json.Unmarshal(w.Body.Bytes(), &index); err != nil || w.Code != http.StatusOK {
				t.Fatalf("a registry %s: %d %s %v", name, w.Code, w.Body, err)
			}
			for _, entry := range index.Manifests {
				ids = append(ids, entry.Digest.String())
			}
			return ids
		}
		if w := ask(s.pullManifest, "/v2/shop/app/manifests/"+bill, target{reference: bill}); w.Code != http.StatusNotFound {
			t.Errorf("a registry %s: a manifest that is not listed: %d", name, w.Code)
		}
		if got := referrers(""); len(got) != 2 {
			t.Errorf("a registry %s: referrers %s", name, got)
		}
		if got := referrers("?artifactType=" + string(billType)); len(got) != 1 || got[0] != bill {
			t.Errorf("a registry %s: bills of materials: %s, want %s", name, got, bill)
		}
		for _, id := range []string{bill, signature} {
			artifact, err := remote.Image(registry.digest("team/app", id))
			if err != nil {
				t.Fatal(err)
			}
			layers, err := artifact.Layers()
			if err != nil {
				t.Fatal(err)
			}
			if w := ask(s.pullManifest, "/v2/shop/app/manifests/"+id, target{reference: id}); w.Code != http.StatusOK || w.Header().Get("Docker-Content-Digest") != id {
				t.Errorf("a registry %s: a referrer: %d %s", name, w.Code, w.Body)
			}
			blob := digestOf(t, layers[0])
			if w := ask(s.pullBlob, "/v2/shop/app/blobs/"+blob, target{digest: blob}); w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("a registry %s: the content of a referrer: %d %s", name, w.Code, w.Body)
			}
		}
		attachment := local.attachTo("shop/app", registry.digest("team/app", image), billType, "ours")
		if got := referrers(""); len(got) != 3 || got[0] != attachment {
			t.Errorf("a registry %s: with a referrer that was pushed here: %s", name, got)
		}
		forbidden.Store(true)
		if w := ask(s.pullReferrers, "/v2/shop/app/referrers/"+image, target{digest: image}); w.Code != http.StatusForbidden {
			t.Errorf("a registry %s returns 403: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestManifestOfOtherProjectIsNotServedAsReferrer(t *testing.T) {
	far := httptest.NewServer(other.New(other.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError))))
	t.Cleanup(far.Close)
	remoteName := strings.TrimPrefix(far.URL, "http://") + "/team/app"
	manifest := `{"schemaVersion": 2}`
	private := digest.FromString(manifest).String()
	s, registry := serverWith(someDigest, remoteName+"@"+someDigest), newTestRegistry(t)
	image := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: private}, DockerImageManifest: manifest, DockerImageManifestMediaType: ocispec.MediaTypeImageManifest}
	if _, err := s.images.Images().Create(t.Context(), image, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The cache contains the private manifest, because the other registry has listed it.
	s.blobs.add("shop/app", []string{private}, source{remote: remoteName})
	w := httptest.NewRecorder()
	s.pullManifest(w, httptest.NewRequest(http.MethodGet, "/v2/shop/app/manifests/"+private, nil), registry.store, target{namespace: "shop", stream: "app", reference: private})
	if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "schemaVersion") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
