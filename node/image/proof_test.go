package image

import (
	"archive/tar"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tarFile returns a tar archive with one file.
func tarFile(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestPullOfStoredImageRequiresItsContent(t *testing.T) {
	victim, hostile := newBlobRegistry(t), newBlobRegistry(t)
	f := newPullFixture(t, victim.host, hostile.host)
	secret := victim.newImage(t, "base", "secret")
	manifest := victim.publish(t, secret)
	if _, err := f.pull(t, victim.host+"/shop/app:1"); err != nil {
		t.Fatal(err)
	}
	at := func(desc ocispec.Descriptor) string { return hostile.host + "/x@" + desc.Digest.String() }
	copyBlob := func(name digest.Digest) { hostile.add(victim.blobs[name].mediaType, victim.blobs[name].data) }
	expectRejected := func(name, image string) {
		if id, err := f.pull(t, image); err == nil {
			t.Errorf("%s: the pull of image %s succeeds", name, id)
		}
	}

	hostile.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead {
			return false
		}
		// The registry claims to have every blob, but serves none.
		desc := victim.blobs[digest.Digest(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])]
		w.Header().Set("Content-Type", desc.mediaType)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(desc.data).String())
		w.Header().Set("Content-Length", "1")
		return true
	}
	expectRejected("the digest of the manifest", at(manifest))
	hostile.intercept = nil

	copyBlob(manifest.Digest)
	expectRejected("the manifest", at(manifest))
	copyBlob(secret.manifest.Config.Digest)
	copyBlob(secret.layers[0].Digest)
	expectRejected("all but one layer", at(manifest))

	// The hostile registry serves its own layer but claims the diff IDs of the victim's image, so
	// the snapshots have the same chain IDs.
	forged := hostile.newImage(t, "base", "junk")
	forged.config.RootFS.DiffIDs = secret.config.RootFS.DiffIDs
	expectRejected("the names of the layers' content", at(hostile.publish(t, forged)))
	forged.layers = forged.layers[:1]
	expectRejected("fewer layers", at(hostile.publish(t, forged)))
	// The second attempt must not find content from the first attempt.
	expectRejected("the names of the layers' content again", at(hostile.publish(t, &fakeImage{config: secret.config, layers: secret.layers})))

	// A manifest whose layers specify a platform is not an image manifest.
	elsewhere := &ocispec.Platform{OS: "windows", Architecture: "amd64"}
	filtered := &fakeImage{config: secret.config}
	for _, layer := range secret.layers {
		layer.Platform = elsewhere
		filtered.layers = append(filtered.layers, layer)
	}
	expectRejected("layers for another platform", at(hostile.publish(t, filtered)))

	copyBlob(secret.layers[1].Digest)
	if _, err := f.pull(t, at(manifest)); err != nil {
		t.Errorf("pull from a registry with the image: %v", err)
	}
}

func TestLayersAreDownloadedOnceForEachRepository(t *testing.T) {
	registry := newBlobRegistry(t)
	f := newPullFixture(t, registry.host)
	f.restart(t, func(s *Service) { s.Store.Snapshotter = "" }) // use the client's default
	image := registry.newImage(t, "base", "app")
	registry.publish(t, image)
	denied := image.layers[1].Digest.String()
	registry.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/evil/") || !strings.HasSuffix(r.URL.Path, denied) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	for _, name := range []string{"shop/app", "shop/app", "shop/other"} {
		if _, err := f.pull(t, registry.host+"/"+name+":1"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, layer := range image.layers {
		if n := registry.count(layer.Digest); n != 2 {
			t.Errorf("layer %s was downloaded %d times, want once for each repository", layer.Digest, n)
		}
	}
	if n := registry.count(image.manifest.Config.Digest); n != 3 {
		t.Errorf("the configuration was downloaded %d times, want once for each pull", n)
	}
	// The registry serves the manifest to the caller, but denies access to a layer in this
	// repository.
	if _, err := f.pull(t, registry.host+"/evil/app:1"); err == nil {
		t.Error("the pull succeeds although the registry denies a layer")
	}
}

// TestHeadDoesNotProveAccess uses a registry that serves a layer in one repository. In another
// repository, the registry only claims to have the layer, like a registry that forwards requests to
// another server.
func TestHeadDoesNotProveAccess(t *testing.T) {
	registry := newBlobRegistry(t)
	f := newPullFixture(t, registry.host)
	secret := registry.newImage(t, "base", "secret")
	registry.publish(t, secret)
	if _, err := f.pull(t, registry.host+"/shop/app:1"); err != nil {
		t.Fatal(err)
	}
	denied := secret.layers[1].Digest.String()
	registry.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/evil/") || !strings.HasSuffix(r.URL.Path, denied) {
			return false
		}
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageLayer)
			w.Header().Set("Docker-Content-Digest", denied)
			w.Header().Set("Content-Length", "1")
			return true
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	if id, err := f.pull(t, registry.host+"/evil/app:1"); err == nil {
		t.Errorf("the pull of image %s succeeds", id)
	}
}
