package registry

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/diskspace"
)

func TestGarbageCollectionKeepsBlobsOfPushInProgress(t *testing.T) {
	for name, rely := range map[string]func(t *testing.T, s *server, g *testRegistry, id string){
		"a blob that the client found": func(t *testing.T, s *server, g *testRegistry, id string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodHead, "/v2/shop/app/blobs/"+id, nil)
			s.pullBlob(w, r, g.store, target{namespace: "shop", stream: "app", digest: id})
			if w.Code != http.StatusOK {
				t.Fatalf("HEAD: %d", w.Code)
			}
		},
		"a blob that the client mounts": func(t *testing.T, s *server, g *testRegistry, id string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/v2/shop/other/blobs/uploads/?mount="+id+"&from=shop/app", nil)
			s.upload(w, r, g.store, "shop")
			if w.Code != http.StatusCreated {
				t.Fatalf("mount: %d %s", w.Code, w.Body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, g, _ := project(t, Unlimited, diskspace.Reserve{}, t.TempDir())
			layer := g.layer()
			old, id := g.push("shop/app", layer), digestOf(t, layer)
			rely(t, s, g, id)
			request := record.GarbageRequest{Images: []record.GarbageImage{{Digest: old, Repositories: []string{"shop/app"}}}}
			garbage := g.collect(collection{request: request, promises: &s.promises})
			if !exists(t, g.store, id) {
				t.Fatalf("the push lost its layer: %+v", garbage)
			}
			if exists(t, g.store, old) {
				t.Error("the manifest of the removed image still exists")
			}
			// End the promises, as if the push had ended or been abandoned.
			s.promises.forget(func(string, time.Time) bool { return true })
			g.collect(collection{request: record.GarbageRequest{Everything: true}, promises: &s.promises, now: time.Now().Add(2 * uploadAge)})
			if exists(t, g.store, id) {
				t.Error("the layer was never removed")
			}
		})
	}
}

func TestManifestReleasesPromises(t *testing.T) {
	var all promises
	id := digest.FromString("layer")
	all.make("shop/app", id)
	all.make("shop/other", id)
	all.drop("shop/app", id)
	removed := false
	remove := func() error { removed = true; return nil }
	if promised, err := all.unless("shop/app", id, remove); promised || err != nil || !removed {
		t.Errorf("kept %v, %v after the manifest was pushed", promised, err)
	}
	removed = false
	for _, repository := range []string{"shop/other", ""} {
		if promised, err := all.unless(repository, id, remove); !promised || err != nil || removed {
			t.Errorf("repository %q: kept %v, %v", repository, promised, err)
		}
	}
}

func TestMissingBlobIsNotPromised(t *testing.T) {
	s, g, _ := project(t, Unlimited, diskspace.Reserve{}, t.TempDir())
	s.images = inCluster(t, nil).images
	id := digest.FromString("nowhere")
	w := httptest.NewRecorder()
	s.pullBlob(w, httptest.NewRequest(http.MethodHead, "/v2/shop/app/blobs/"+id.String(), nil), g.store, target{namespace: "shop", stream: "app", digest: id.String()})
	if w.Code != http.StatusNotFound || len(s.promises.blobs) > 0 {
		t.Errorf("%d, promised %v", w.Code, s.promises.blobs)
	}
	r := httptest.NewRequest(http.MethodPut, "/v2/shop/app/blobs/uploads/11111111-1111-1111-1111-111111111111?digest="+id.String(), strings.NewReader("other"))
	w = httptest.NewRecorder()
	s.upload(w, r, g.store, "shop")
	if w.Code < http.StatusBadRequest || len(s.promises.blobs) > 0 {
		t.Errorf("%d, promised %v", w.Code, s.promises.blobs)
	}
}

// vanishing is storage in which the directory of an upload is removed while it is being read.
type vanishing struct{ driver.StorageDriver }

func (v vanishing) List(ctx context.Context, path string) ([]string, error) {
	if strings.Contains(path, "/"+uploadsDir+"/") {
		return nil, driver.Error{DriverName: "filesystem", Detail: &fs.PathError{Op: "readdirent", Path: path, Err: fs.ErrNotExist}}
	}
	return v.StorageDriver.List(ctx, path)
}

func TestGarbageCollectionIgnoresEndedUploads(t *testing.T) {
	_, g, front := project(t, Unlimited, diskspace.Reserve{}, t.TempDir())
	id := g.push("shop/app", g.layer())
	if status, body := send(t, front, 10, false); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	within, ok := g.driver.(directories)
	if !ok {
		t.Fatalf("the storage is a %T", g.driver)
	}
	g.driver = directories{vanishing(within)}
	g.collect(collection{request: record.GarbageRequest{Everything: true}, images: map[string][]string{id: nil}, now: time.Now()})
	if size, err := g.bytesOf(t.Context(), "shop"); err != nil || size == 0 {
		t.Errorf("the project has %d bytes, %v", size, err)
	}
	if err := g.driver.Walk(t.Context(), "/nowhere", func(driver.FileInfo) error { return io.EOF }); !errors.As(err, new(driver.PathNotFoundError)) {
		t.Errorf("a walk of a missing directory: %v", err)
	}
}
