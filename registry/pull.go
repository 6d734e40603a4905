package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// pullManifest answers the manifest of a stream's tag or image, wherever it is. What no stream knows is the store's: an image that is being pushed.
func (s *server) pullManifest(w http.ResponseWriter, r *http.Request, store *store, t target) {
	at, ok, err := s.find(r.Context(), t)
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	if !ok {
		s.pullUnknown(w, r, store, t)
		return
	}
	if at.source.remote == "" {
		if id, err := digest.Parse(at.digest); err == nil && at.source.repository != t.repository() && store.hasManifest(r.Context(), t.repository(), id) {
			at.source.repository = t.repository() // it was moved here when the other project was deleted
		}
		if at.source.repository != t.repository() && !at.unproven {
			s.remember(r.Context(), t, at)
		}
		store.ServeHTTP(w, redirect(r, at.source.repository, "manifests", at.digest))
		return
	}
	s.pullThrough(w, r, t, at)
}

// pullUnknown answers a manifest that no stream knows: one that is being pushed, or what refers to an image, here or where the image is.
func (s *server) pullUnknown(w http.ResponseWriter, r *http.Request, store *store, t target) {
	id, err := digest.Parse(t.reference)
	if err != nil {
		serveError(w, errcode.ErrorCodeManifestUnknown.WithDetail(map[string]string{"tag": t.reference}))
		return
	}
	at, known := s.blobs.get(blobOf{t.repository(), t.reference})
	if !known || at.remote == "" || store.hasManifest(r.Context(), t.repository(), id) {
		store.ServeHTTP(w, r)
		return
	}
	s.passOn(w, r, t, found{digest: t.reference, source: at})
}

// redirect is the request for the same thing in another repository, by its digest.
func redirect(r *http.Request, repository, kind, digest string) *http.Request {
	moved := r.Clone(r.Context())
	moved.URL.Path = "/v2/" + repository + "/" + kind + "/" + digest
	moved.URL.RawPath, moved.RequestURI = "", moved.URL.Path
	return moved
}

// remember notes where the blobs of an image are, for the requests that follow.
func (s *server) remember(ctx context.Context, t target, at found) {
	image, err := s.images.Images().Get(ctx, at.digest, metav1.GetOptions{})
	if err != nil {
		return // it is found again by the stream
	}
	s.rememberImage(t, image, at.source)
}

func (s *server) rememberImage(t target, image *imagev1.Image, at source) {
	var blobs []string
	for _, layer := range image.DockerImageLayers {
		blobs = append(blobs, layer.Name)
	}
	if described, err := record.Metadata(image); err == nil && described.ID != "" {
		blobs = append(blobs, described.ID)
	}
	s.blobs.put(t.repository(), blobs, at)
}

// pullThrough answers a manifest of another registry: the one that was imported, or else the registry's own answer.
func (s *server) pullThrough(w http.ResponseWriter, r *http.Request, t target, at found) {
	if at.unproven {
		s.passOn(w, r, t, at)
		return
	}
	image, err := s.images.Images().Get(r.Context(), at.digest, metav1.GetOptions{})
	if err != nil && !errors.IsNotFound(err) {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	if err != nil || record.Digest([]byte(image.DockerImageManifest)) != at.digest {
		s.passOn(w, r, t, at)
		return
	}
	s.rememberImage(t, image, at.source)
	serveManifest(w, r, registryclient.Manifest{MediaType: image.DockerImageManifestMediaType, Digest: at.digest, Bytes: []byte(image.DockerImageManifest)})
}

// passOn answers a manifest as another registry does. What that registry only claims to have is not taken from the cluster's images, which may be those of
// other projects.
func (s *server) passOn(w http.ResponseWriter, r *http.Request, t target, at found) {
	if s.returned(r) {
		serveError(w, leadsBack(t, at.source))
		return
	}
	account := s.Remotes.Join(t.namespace)
	defer account.Close()
	ctx, cancel := context.WithTimeout(r.Context(), remoteTimeout)
	defer cancel()
	manifest, err := s.client(r, t, at.source, account).Manifest(ctx, at.source.remote+"@"+at.digest)
	if err != nil {
		serveError(w, notThere(err, errcode.ErrorCodeManifestUnknown))
		return
	}
	if image, err := record.Of(record.Content{MediaType: manifest.MediaType, Manifest: manifest.Bytes}); err == nil {
		s.rememberImage(t, image, at.source)
	}
	serveManifest(w, r, manifest)
}

func serveManifest(w http.ResponseWriter, r *http.Request, manifest registryclient.Manifest) {
	header := w.Header()
	header.Set("Content-Type", manifest.MediaType)
	header.Set("Content-Length", strconv.Itoa(len(manifest.Bytes)))
	header.Set("Docker-Content-Digest", manifest.Digest)
	header.Set("Etag", strconv.Quote(manifest.Digest))
	if r.Method == http.MethodGet {
		_, _ = w.Write(manifest.Bytes)
	}
}

// notThere says what another registry's answer means for the client.
func notThere(err error, unknown errcode.ErrorCode) errcode.Error {
	switch registryclient.Status(err) {
	case http.StatusNotFound:
		return unknown.WithMessage(err.Error())
	case http.StatusUnauthorized, http.StatusForbidden:
		return errcode.ErrorCodeDenied.WithMessage("the other registry refuses: " + err.Error())
	}
	return errcode.ErrorCodeUnavailable.WithMessage(err.Error())
}

// remoteTimeout bounds the time for what is read as a whole of another registry.
const remoteTimeout = 30 * time.Second

// client reads another registry for a request, with the credentials of the stream's project. A secret that cannot be read leaves its credentials out.
func (s *server) client(r *http.Request, t target, at source, account *registryclient.Account) registryclient.Client {
	client := s.Remotes.Client(account, at.insecure)
	client.Via = append(r.Header.Values("Via"), "1.1 "+s.name)
	if secrets, err := s.images.ImageStreams(t.namespace).Secrets(r.Context(), t.stream, metav1.GetOptions{}); err == nil {
		client.Keychain, _ = registryclient.KeychainOf((*corev1.SecretList)(secrets).Items)
	}
	return client
}

// mostReturns is how often a request may come back to this registry: a stream may name by another address a stream of it that is elsewhere in turn.
const mostReturns = 3

// returned says whether this registry has passed a request on, and it came back too often: a stream can name this registry by an address that nobody knows as
// such, and would be pulled through itself without an end.
func (s *server) returned(r *http.Request) bool {
	return strings.Count(strings.Join(r.Header.Values("Via"), ","), s.name) >= mostReturns
}

func leadsBack(t target, at source) errcode.Error {
	return errcode.ErrorCodeDenied.WithMessage(fmt.Sprintf("image stream %q says that its image is in %q, which leads back to it: import it from where it is", t.repository(), at.remote))
}

// pullBlob answers a blob of a stream's images, wherever it is.
func (s *server) pullBlob(w http.ResponseWriter, r *http.Request, store *store, t target) {
	id, err := digest.Parse(t.digest)
	if err != nil {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithDetail(err))
		return
	}
	if store.hasBlob(r.Context(), t.repository(), id) {
		store.serveBlob(w, r)
		return
	}
	at, ok, err := s.findBlob(r.Context(), t)
	switch {
	case err != nil:
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
	case !ok:
		serveError(w, errcode.ErrorCodeBlobUnknown.WithDetail(map[string]string{"digest": t.digest}))
	case at.remote == "":
		store.serveBlob(w, redirect(r, at.repository, "blobs", t.digest))
	default:
		s.pullBlobThrough(w, r, store, t, at)
	}
}

// pullBlobThrough answers a blob of another registry, and keeps it: the next time it is here.
func (s *server) pullBlobThrough(w http.ResponseWriter, r *http.Request, store *store, t target, at source) {
	if s.returned(r) {
		serveError(w, leadsBack(t, at))
		return
	}
	ctx := r.Context()
	content, size, err := s.client(r, t, at, nil).Blob(ctx, at.remote, t.digest)
	if err != nil {
		serveError(w, notThere(err, errcode.ErrorCodeBlobUnknown))
		return
	}
	defer content.Close()
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Docker-Content-Digest", t.digest)
	if r.Method == http.MethodHead {
		return
	}
	if err := s.mirror(ctx, w, content, store, t, size); err != nil {
		panic(http.ErrAbortHandler) // the header is out: only the end of the connection tells the client
	}
}

// mirror copies a blob to the client and into the repository. When it cannot be kept, for instance because the disk is full, the client still gets it.
func (s *server) mirror(ctx context.Context, w io.Writer, content io.Reader, store *store, t target, size int64) error {
	repository, err := store.repository(ctx, t.repository())
	if err == nil {
		if err = s.guard.take(ctx, store, t.namespace, size+entryBytes); err == nil {
			s.guard.give(t.namespace, size+entryBytes) // what is written takes it
		}
	}
	if err != nil || store.readOnly {
		_, err = io.Copy(w, content)
		return err
	}
	kept, err := repository.Blobs(ctx).Create(ctx)
	if err != nil {
		_, err = io.Copy(w, content)
		return err
	}
	copied := &copier{Writer: guarded{kept, func(bytes int64) error { return s.guard.take(ctx, store, t.namespace, bytes) }}}
	if _, err := io.Copy(w, io.TeeReader(content, copied)); err != nil {
		_ = kept.Cancel(ctx)
		return fmt.Errorf("pass blob %q on: %w", t.digest, err)
	}
	if copied.err == nil {
		_, copied.err = kept.Commit(ctx, ocispec.Descriptor{Digest: digest.Digest(t.digest), Size: size})
	}
	if copied.err != nil {
		_ = kept.Cancel(ctx)
	}
	return nil
}

// guarded takes bytes before it writes them.
type guarded struct {
	io.Writer
	take func(bytes int64) error
}

// Write fails if the project or the disk has no bytes for p.
func (g guarded) Write(p []byte) (int, error) {
	if err := g.take(int64(len(p))); err != nil {
		return 0, err
	}
	return g.Writer.Write(p)
}

// copier writes until the first error, and never fails.
type copier struct {
	io.Writer
	err error
}

// Write passes p on unless an earlier write failed.
func (c *copier) Write(p []byte) (int, error) {
	if c.err == nil {
		_, c.err = c.Writer.Write(p)
	}
	return len(p), nil
}
