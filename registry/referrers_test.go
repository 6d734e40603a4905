package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// attach pushes an artifact that refers to a manifest in a repository, as signing tools do.
func (g *testRegistry) attach(repository, subject string, kind types.MediaType) string {
	g.t.Helper()
	return g.attachWithNote(repository, subject, kind, "")
}

// attachWithNote is like attach, but with a note in the artifact.
func (g *testRegistry) attachWithNote(repository, subject string, kind types.MediaType, note string) string {
	g.t.Helper()
	return g.attachTo(repository, g.digest(repository, subject), kind, note)
}

// attachTo is like attachWithNote, but the subject can be in another registry.
func (g *testRegistry) attachTo(repository string, subject name.Digest, kind types.MediaType, note string) string {
	g.t.Helper()
	of, err := remote.Head(subject)
	if err != nil {
		g.t.Fatal(err)
	}
	artifact, err := mutate.AppendLayers(empty.Image, g.layer())
	if err != nil {
		g.t.Fatal(err)
	}
	artifact = mutate.ConfigMediaType(mutate.MediaType(artifact, types.OCIManifestSchema1), kind)
	if note != "" {
		artifact = mutate.Annotations(artifact, map[string]string{"note": note}).(v1.Image)
	}
	image := mutate.Subject(artifact, *of).(v1.Image)
	id := digestOf(g.t, image)
	if err := remote.Write(g.digest(repository, id), image); err != nil {
		g.t.Fatal(err)
	}
	return id
}

// referring lists a manifest's referrers with go-containerregistry.
func (g *testRegistry) referring(repository, subject string, options ...remote.Option) (ids []string) {
	g.t.Helper()
	index, err := remote.Referrers(g.digest(repository, subject), options...)
	if err != nil {
		g.t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, entry := range manifest.Manifests {
		ids = append(ids, entry.Digest.String())
	}
	return ids
}

const signatureType, billType = types.MediaType("application/vnd.example.signature"), types.MediaType("application/vnd.example.bill")

func TestReferrersAreListed(t *testing.T) {
	g := newTestRegistry(t)
	image := g.push("shop/app", g.layer())
	if got := g.referring("shop/app", image); len(got) > 0 {
		t.Errorf("the image has no referrers, but the registry lists %s", got)
	}
	signature, bill := g.attach("shop/app", image, signatureType), g.attach("shop/app", image, billType)
	want := []string{signature, bill}
	slices.Sort(want)
	if got := g.referring("shop/app", image); !slices.Equal(got, want) {
		t.Errorf("referrers %s, want %s", got, want)
	}
	if got := g.referring("shop/app", image, remote.WithFilter("artifactType", string(billType))); !slices.Equal(got, []string{bill}) {
		t.Errorf("bills %s, want %s", got, bill)
	}
	if got := g.referring("shop/other", image); len(got) > 0 {
		t.Errorf("another repository has %s", got)
	}
	if err := remote.Delete(g.digest("shop/app", signature)); err != nil {
		t.Fatal(err)
	}
	if got := g.referring("shop/app", image); !slices.Equal(got, []string{bill}) {
		t.Errorf("after a removal, the referrers are %s, want %s", got, bill)
	}
}

func TestReferrersArePaged(t *testing.T) {
	g := newTestRegistry(t)
	image := g.push("shop/app", g.layer())
	bill := g.attach("shop/app", image, billType)
	// Record more referrers than fit on a page. Only the last referrer has a manifest.
	for i := range maxReferrers {
		id := digest.NewDigestFromEncoded(digest.SHA256, fmt.Sprintf("%064x", i))
		if err := g.noteReferrer(t.Context(), "shop/app", digest.Digest(image), id); err != nil {
			t.Fatal(err)
		}
	}
	manifests, next, err := g.describeReferrers(t.Context(), "shop/app", digest.Digest(image), "", "")
	if err != nil || len(manifests) > 0 || next == "" {
		t.Fatalf("first page: %d, next %q, %v", len(manifests), next, err)
	}
	manifests, next, err = g.describeReferrers(t.Context(), "shop/app", digest.Digest(image), "", next)
	if err != nil || len(manifests) != 1 || manifests[0].Digest.String() != bill || next != "" {
		t.Errorf("second page: %+v, next %q, %v", manifests, next, err)
	}
}

func TestLargeReferrersArePaged(t *testing.T) {
	g := newTestRegistry(t)
	image := g.push("shop/app", g.layer())
	var want, got []string
	for range 3 {
		want = append(want, g.attachWithNote("shop/app", image, billType, strings.Repeat("a", maxPage*2/5)))
	}
	slices.Sort(want)
	var sizes []int
	for last, more := "", true; more; more = last != "" {
		manifests, next, err := g.describeReferrers(t.Context(), "shop/app", digest.Digest(image), "", last)
		if err != nil {
			t.Fatal(err)
		}
		for _, desc := range manifests {
			got = append(got, desc.Digest.String())
		}
		sizes, last = append(sizes, len(manifests)), next
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("pages of %d have %s, want %s", sizes, got, want)
	}
}

// unremovable is storage that fails to remove files whose path contains kind.
type unremovable struct {
	driver.StorageDriver
	kind string
}

func (r unremovable) Delete(ctx context.Context, path string) error {
	if strings.Contains(path, r.kind) {
		return fmt.Errorf("remove %q: not permitted", path)
	}
	return r.StorageDriver.Delete(ctx, path)
}

func TestReferrerIsListedUntilRemovalSucceeds(t *testing.T) {
	g := newTestRegistry(t)
	subject := g.push("shop/app", g.layer())
	referrer := g.attach("shop/app", subject, billType)
	search := collection{store: g.store, request: record.GarbageRequest{Images: []record.GarbageImage{{Digest: subject, Repositories: []string{"shop/app"}}}}}
	files := g.driver
	g.driver = unremovable{files, revisionsDir}
	if _, err := search.run(t.Context()); err == nil {
		t.Fatal("no removal failed")
	}
	g.driver = files
	if got := g.referring("shop/app", subject); !slices.Equal(got, []string{referrer}) {
		t.Errorf("referrers %s, want %s", got, referrer)
	}
	g.collect(search)
	if g.has("shop/app", referrer) || g.onDisk(referrer) {
		t.Error("the referrer outlived its subject")
	}
}

func TestReferrersAreRemovedWithSubject(t *testing.T) {
	g := newTestRegistry(t)
	remaining, deleted := g.push("shop/app", g.layer()), g.push("shop/app", g.layer())
	bill := g.attach("shop/app", remaining, billType)
	signature := g.attach("shop/app", bill, signatureType) // signs the bill of materials
	referrer := g.attach("shop/app", deleted, billType)
	now := time.Now().Add(2 * time.Hour)

	all := record.GarbageRequest{Everything: true}
	garbage := g.collect(collection{request: all, images: map[string][]string{remaining: nil, deleted: nil}, now: now})
	if len(garbage.Manifests)+len(garbage.Blobs) > 0 {
		t.Errorf("referrers of images: removed %+v", garbage)
	}
	request := record.GarbageRequest{Images: []record.GarbageImage{{Digest: deleted, Repositories: []string{"shop/app"}}}}
	g.collect(collection{request: request, images: map[string][]string{remaining: nil}, now: now})
	if g.has("shop/app", deleted) || g.has("shop/app", referrer) || g.onDisk(referrer) || len(g.referring("shop/app", deleted)) > 0 {
		t.Error("a referrer outlived its subject")
	}
	if !g.has("shop/app", bill) || !g.has("shop/app", signature) || !slices.Equal(g.referring("shop/app", bill), []string{signature}) {
		t.Error("a referrer of an image in use was removed")
	}
	// Referrers are kept if their image is in the stream, even if the image is not in this
	// repository.
	remoteImage := g.push("shop/base", g.layer())
	if garbage := g.collect(collection{request: all, images: map[string][]string{remoteImage: nil}, streams: map[string][]string{"shop/app": {remaining}}, now: now}); !g.has("shop/app", signature) {
		t.Errorf("referrers of an image of the stream: removed %+v", garbage)
	}
	g.collect(collection{request: all, images: map[string][]string{}, now: now})
	if g.has("shop/app", bill) || g.has("shop/app", signature) {
		t.Error("referrers of an unknown image still exist")
	}
}

// send sends a request and returns the response's status and header.
func (g *testRegistry) send(method, path string, header http.Header, body []byte) *http.Response {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.host+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response
}

func TestDigestsOfOtherAlgorithms(t *testing.T) {
	g := newTestRegistry(t)
	blob, config := []byte("a layer"), []byte("{}")
	upload := func(content []byte) digest.Digest {
		t.Helper()
		id := digest.SHA512.FromBytes(content)
		start := g.send(http.MethodPost, "/v2/shop/app/blobs/uploads/", http.Header{}, nil)
		at, err := start.Location()
		if err != nil {
			t.Fatal(err)
		}
		query := at.Query()
		query.Set("digest", id.String())
		if done := g.send(http.MethodPut, at.Path+"?"+query.Encode(), http.Header{"Content-Type": {"application/octet-stream"}}, content); done.StatusCode != http.StatusCreated {
			t.Fatalf("upload as %s: %s", id, done.Status)
		}
		return id
	}
	layer := upload(blob)
	manifest := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + upload(config).String() + `","size":2},` +
		`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"` + layer.String() + `","size":7}]}`)
	id, other := digest.SHA512.FromBytes(manifest), digest.SHA512.FromString("another")
	header := http.Header{"Content-Type": {string(types.OCIManifestSchema1)}, "Accept": {string(types.OCIManifestSchema1)}}
	if resp := g.send(http.MethodPut, "/v2/shop/app/manifests/"+other.String(), header, manifest); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a manifest with the digest of another one: %s", resp.Status)
	}
	resp := g.send(http.MethodPut, "/v2/shop/app/manifests/"+id.String(), header, manifest)
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Docker-Content-Digest") != id.String() || !strings.HasSuffix(resp.Header.Get("Location"), id.String()) {
		t.Fatalf("put: %s, %v", resp.Status, resp.Header)
	}
	exists := func() bool {
		return g.send(http.MethodGet, "/v2/shop/app/manifests/"+id.String(), header, nil).StatusCode == http.StatusOK &&
			g.send(http.MethodGet, "/v2/shop/app/blobs/"+layer.String(), http.Header{}, nil).StatusCode == http.StatusOK
	}
	if !exists() {
		t.Fatal("stored content is missing")
	}
	request, now := record.GarbageRequest{Everything: true}, time.Now().Add(2*time.Hour)
	canonical := digest.FromBytes(manifest).String()
	if garbage := g.collect(collection{request: request, images: map[string][]string{canonical: nil}, now: now}); !exists() {
		t.Errorf("an image in use: removed %+v", garbage)
	}
	if garbage := g.collect(collection{request: request, images: map[string][]string{}, now: now}); exists() || len(garbage.Blobs) != 3 {
		t.Errorf("a removed image: removed %+v", garbage)
	}
}
