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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// pullManifest serves the manifest of a tag or image in a stream, regardless of where the manifest
// is stored. If the stream does not contain the image, pullUnknown serves the manifest.
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
			// The image was moved to this repository when its original project was deleted.
			at.source.repository = t.repository()
		}
		if at.source.repository != t.repository() && !at.unproven {
			s.remember(r.Context(), t, at)
		}
		store.readManifest(w, redirect(r, at.source.repository, "manifests", at.digest))
		return
	}
	s.pullThrough(w, r, t, at)
}

// pullUnknown serves a manifest that the stream does not contain. The manifest belongs to an image
// that is being pushed, or to an image's referrer in this registry or in the image's registry.
func (s *server) pullUnknown(w http.ResponseWriter, r *http.Request, store *store, t target) {
	id, err := digest.Parse(t.reference)
	if err != nil {
		serveError(w, errcode.ErrorCodeManifestUnknown.WithDetail(map[string]string{"tag": t.reference}))
		return
	}
	at, ok := s.blobs.get(blobOf{t.repository(), t.reference})
	if !ok || at.remote == "" || store.hasManifest(r.Context(), t.repository(), id) {
		store.readManifest(w, r)
		return
	}
	s.passOn(w, r, t, location{digest: t.reference, source: at})
}

// redirect returns a copy of the request for the same digest in another repository.
func redirect(r *http.Request, repository, kind, digest string) *http.Request {
	forwarded := r.Clone(r.Context())
	forwarded.URL.Path = "/v2/" + repository + "/" + kind + "/" + digest
	forwarded.URL.RawPath, forwarded.RequestURI = "", forwarded.URL.Path
	return forwarded
}

// remember caches the locations of an image's blobs for later requests.
func (s *server) remember(ctx context.Context, t target, at location) {
	image, err := s.images.Images().Get(ctx, at.digest, metav1.GetOptions{})
	if err != nil {
		return // later requests find the blobs through the stream
	}
	s.rememberImage(t, image, at.source)
}

func (s *server) rememberImage(t target, image *imagev1.Image, at source) {
	var blobs []string
	for _, layer := range image.DockerImageLayers {
		blobs = append(blobs, layer.Name)
	}
	if metadata, err := record.Metadata(image); err == nil && metadata.ID != "" {
		blobs = append(blobs, metadata.ID)
	}
	s.blobs.add(t.repository(), blobs, at)
}

// pullThrough serves a manifest from another registry: the imported copy or, if there is none, the
// other registry's response.
func (s *server) pullThrough(w http.ResponseWriter, r *http.Request, t target, at location) {
	if at.unproven {
		s.passOn(w, r, t, at)
		return
	}
	image, err := s.images.Images().Get(r.Context(), at.digest, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
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

// passOn serves a manifest from another registry. It ignores the cluster's Image objects, because
// they can belong to other projects.
func (s *server) passOn(w http.ResponseWriter, r *http.Request, t target, at location) {
	if s.isLoop(r) {
		serveError(w, leadsBack(t, at.source))
		return
	}
	account := s.Remotes.Join(t.namespace)
	defer account.Close()
	ctx, cancel := context.WithTimeout(r.Context(), remoteTimeout)
	defer cancel()
	manifest, err := s.client(r, t, at.source, account).Manifest(ctx, at.source.remote+"@"+at.digest)
	if err != nil {
		serveError(w, toResponse(err, errcode.ErrorCodeManifestUnknown))
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

// toResponse converts another registry's error to a response.
func toResponse(err error, unknown errcode.ErrorCode) errcode.Error {
	switch registryclient.Status(err) {
	case http.StatusNotFound:
		return unknown.WithMessage(err.Error())
	case http.StatusUnauthorized, http.StatusForbidden:
		return errcode.ErrorCodeDenied.WithMessage("the other registry rejects the request: " + err.Error())
	}
	return errcode.ErrorCodeUnavailable.WithMessage(err.Error())
}

// remoteTimeout is the timeout for manifest and blob requests to another registry.
const remoteTimeout = 30 * time.Second

// client returns a client for another registry that uses the credentials of the stream's project.
// It skips secrets that cannot be read.
func (s *server) client(r *http.Request, t target, at source,
	account *registryclient.Account) registryclient.Client {
	client := s.Remotes.Client(account, at.insecure)
	client.Via = append(r.Header.Values("Via"), "1.1 "+s.name)
	if secrets, err := s.images.ImageStreams(t.namespace).Secrets(r.Context(), t.stream, metav1.GetOptions{}); err == nil {
		client.Keychain, _ = registryclient.KeychainOf((*corev1.SecretList)(secrets).Items)
	}
	return client
}

// maxReturns is the maximum number of times that a request can return to this registry. A few
// returns are legitimate: a stream can refer to another stream in this registry by an address that
// the registry does not recognize. That stream can then refer to another registry.
const maxReturns = 3

// isLoop reports whether a request has passed through this registry too often. A stream can refer
// to this registry by an address that the registry does not recognize. Each pull from the stream
// would then cause another pull from the same stream, in an endless loop.
func (s *server) isLoop(r *http.Request) bool {
	return strings.Count(strings.Join(r.Header.Values("Via"), ","), s.name) >= maxReturns
}

func leadsBack(t target, at source) errcode.Error {
	return errcode.ErrorCodeDenied.WithMessage(fmt.Sprintf("image stream %q refers to %q, which leads back to the stream; import the image from its original registry", t.repository(), at.remote))
}

// pullBlob serves a blob of one of a stream's images, regardless of where the blob is stored.
func (s *server) pullBlob(w http.ResponseWriter, r *http.Request, store *store, t target) {
	id, err := digest.Parse(t.digest)
	if err != nil {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithDetail(err))
		return
	}
	withdraw := func() {}
	if r.Method == http.MethodHead { // a client does not push data that the registry has
		withdraw = s.promises.make(t.repository(), id)
	}
	if store.hasBlob(r.Context(), t.repository(), id) {
		store.serveBlob(w, r)
		return
	}
	withdraw()
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

// pullBlobThrough serves a blob from another registry, and stores it for later requests.
func (s *server) pullBlobThrough(w http.ResponseWriter, r *http.Request, store *store, t target,
	at source) {
	if s.isLoop(r) {
		serveError(w, leadsBack(t, at))
		return
	}
	ctx := r.Context()
	content, size, err := s.client(r, t, at, nil).Blob(ctx, at.remote, t.digest)
	if err != nil {
		serveError(w, toResponse(err, errcode.ErrorCodeBlobUnknown))
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
		// The headers have already been sent, so the error can only be reported by closing the
		// connection.
		panic(http.ErrAbortHandler)
	}
}

// mirror copies a blob to the client and into the repository. If the blob cannot be stored, for
// example because the disk is full, the client still receives it.
func (s *server) mirror(ctx context.Context, w io.Writer, content io.Reader, store *store, t target,
	size int64) error {
	repository, err := store.repository(ctx, t.repository())
	if err == nil {
		if err = s.guard.take(ctx, store, t.namespace, size+entryBytes); err == nil {
			s.guard.give(t.namespace, size+entryBytes) // guarded reserves the content as it is written
		}
	}
	if err != nil || store.readOnly {
		_, err = io.Copy(w, content)
		return err
	}
	writer, err := repository.Blobs(ctx).Create(ctx)
	if err != nil {
		_, err = io.Copy(w, content)
		return err
	}
	dest := &copier{Writer: guarded{writer, func(bytes int64) error { return s.guard.take(ctx, store, t.namespace, bytes) }}}
	if _, err := io.Copy(w, io.TeeReader(content, dest)); err != nil {
		_ = writer.Cancel(ctx)
		return fmt.Errorf("forward blob %q: %w", t.digest, err)
	}
	if dest.err == nil {
		_, dest.err = writer.Commit(ctx, ocispec.Descriptor{Digest: digest.Digest(t.digest), Size: size})
	}
	if dest.err != nil {
		_ = writer.Cancel(ctx)
	}
	return nil
}

// guarded is a writer that reserves bytes before it writes them.
type guarded struct {
	io.Writer
	take func(bytes int64) error
}

// Write returns an error if the project's quota or the disk has no space for p.
func (g guarded) Write(p []byte) (int, error) {
	if err := g.take(int64(len(p))); err != nil {
		return 0, err
	}
	return g.Writer.Write(p)
}

// copier is a writer that writes until the first error, and records the error. Its Write method
// never fails.
type copier struct {
	io.Writer
	err error
}

// Write forwards p unless an earlier write failed.
func (c *copier) Write(p []byte) (int, error) {
	if c.err == nil {
		_, c.err = c.Writer.Write(p)
	}
	return len(p), nil
}
