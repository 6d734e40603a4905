package registry

import (
	"bytes"
	"context"
	stderrors "errors"
	"fmt"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/registryclient"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// maxManifest is the maximum size of a manifest, in bytes. Distribution has the same limit.
const maxManifest = 4 << 20

// pushManifest stores a manifest. If the client specifies a tag, pushManifest also tags the image
// into the stream. A push by digest is one step of a larger push. pushManifest does not store an
// image that the project may not use.
func (s *server) pushManifest(w http.ResponseWriter, r *http.Request, store *store, t target) {
	account := s.Remotes.Join(t.namespace)
	defer account.Close()
	manifest, err := io.ReadAll(account.Reader(http.MaxBytesReader(w, r.Body, maxManifest)))
	if stderrors.Is(err, registryclient.ErrBusy) {
		serveError(w, errcode.ErrorCodeTooManyRequests.WithMessage(fmt.Sprintf("the project %q pushes too many manifests at the same time; try again later", t.namespace)))
		return
	}
	if err != nil {
		serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage("read manifest: "+err.Error()))
		return
	}
	content := record.Content{MediaType: r.Header.Get("Content-Type"), Manifest: manifest}
	if _, err := record.Of(content); err != nil {
		serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage(err.Error()))
		return
	}
	if err := s.guard.take(r.Context(), store, t.namespace, int64(len(manifest))+entryBytes); err != nil {
		serveRefusal(w, err)
		return
	}
	if err := s.addParts(r, store, t, manifest); err != nil {
		serveRefusal(w, err)
		return
	}
	s.pushes.RLock()
	defer s.pushes.RUnlock()
	// If the manifest is invalid, putManifest reports the error to the client.
	mapping, problem := mappingOf(r.Context(), store, t, content)
	if problem == nil {
		if err := s.mayHave(r.Context(), mapping); err != nil {
			serveError(w, pushRefusal(err))
			return
		}
	}
	response := &pendingBlob{header: http.Header{}}
	store.putManifest(response, r, t.repository(), t.reference, manifest)
	if response.status == http.StatusCreated {
		s.promises.drop(t.repository(), record.References(manifest)...)
	}
	if mapping != nil && mapping.Tag == "" || response.status != http.StatusCreated {
		response.release(w)
		return
	}
	if problem == nil {
		problem = s.tag(r.Context(), callerOf(r), mapping)
	}
	if problem != nil {
		serveError(w, pushRefusal(problem))
		return
	}
	response.release(w)
}

// mayHave returns an error if the API server does not allow the project to use the image.
func (s *server) mayHave(ctx context.Context, mapping *imagev1.ImageStreamMapping) error {
	request := mapping.DeepCopy()
	request.Tag = ""
	_, err := s.images.ImageStreamMappings(mapping.Namespace).Create(ctx, request, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// pushRefusal converts an API server error to a response that explains why a push is not accepted.
func pushRefusal(err error) errcode.Error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		return errcode.ErrorCodeDenied.WithMessage(err.Error())
	}
	return errcode.ErrorCodeUnavailable.WithMessage(err.Error())
}

// tag tags a pushed image into a stream. If the stream is missing, tag creates it with the caller's
// permissions.
func (s *server) tag(ctx context.Context, c caller, mapping *imagev1.ImageStreamMapping) error {
	_, err := s.images.ImageStreamMappings(mapping.Namespace).Create(ctx, mapping, metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	user, err := imageclient.NewForConfig(s.as(c))
	if err != nil {
		return err
	}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: mapping.Namespace, Name: mapping.Name}}
	if _, err := user.ImageStreams(mapping.Namespace).Create(ctx, stream, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create image stream %q: %w", mapping.Namespace+"/"+mapping.Name, err)
	}
	_, err = s.images.ImageStreamMappings(mapping.Namespace).Create(ctx, mapping, metav1.CreateOptions{})
	return err
}

// mappingOf returns the ImageStreamMapping that adds a stored image to a stream. For a push by
// digest, the ImageStreamMapping has no tag. It does not contain the manifest, which stays in the
// registry.
func mappingOf(ctx context.Context, store *store, t target,
	content record.Content) (*imagev1.ImageStreamMapping, error) {
	if record.IsIndex(content.MediaType) {
		content.Largest = store.largest(ctx, t.repository(), content.Manifest)
	} else {
		config, err := record.ConfigDigest(content.Manifest)
		if err != nil {
			return nil, err
		}
		if content.Config, err = store.smallBlob(ctx, t.repository(), digest.Digest(config), maxManifest); err != nil {
			return nil, fmt.Errorf("read pushed image's configuration: %w", err)
		}
	}
	image, err := record.Of(content)
	if err != nil {
		return nil, err
	}
	if record.IsIndex(content.MediaType) && store.hasChildren(ctx, t.repository(), image) {
		image.Annotations[record.ChildrenProven] = "true"
	}
	image.DockerImageManifest, image.DockerImageConfig = "", ""
	image.Annotations[record.Managed], image.Annotations[record.ManifestStored] = "true", "true"
	image.DockerImageReference = registryname.Address + "/" + t.repository() + "@" + image.Name
	mapping := &imagev1.ImageStreamMapping{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.stream}, Image: *image, Tag: t.reference}
	if _, err := digest.Parse(t.reference); err == nil {
		mapping.Tag = ""
	}
	return mapping, nil
}

// pendingBlob is a response writer that buffers a response until its status is known.
type pendingBlob struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the response's header.
func (h *pendingBlob) Header() http.Header { return h.header }

// WriteHeader records the status.
func (h *pendingBlob) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write buffers the body.
func (h *pendingBlob) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}

// release sends the response to the client.
func (h *pendingBlob) release(w http.ResponseWriter) {
	for name, values := range h.header {
		w.Header()[name] = values
	}
	if h.status != 0 {
		w.WriteHeader(h.status)
	}
	_, _ = w.Write(h.body.Bytes())
}
