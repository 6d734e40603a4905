package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/distribution/reference"
	"github.com/gorilla/mux"
	"github.com/opencontainers/go-digest"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/validation"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// server authorizes and serves registry requests. The content comes from the store, or from the
// registry that stores the image.
type server struct {
	*Registry
	name     string // a unique token, which identifies the registry's own requests
	images   imageclient.ImageV1Interface
	reviews  authorizationclient.AuthorizationV1Interface
	store    *lazyStore
	blobs    *sources
	lookups  slots
	shares   *shares
	reviewed singleflight.Group
	// pushes is read-locked while a manifest is stored and tagged, and write-locked while content is
	// removed.
	pushes sync.RWMutex

	namespaces *namespaces
	owners     owners
	guard      *guard
	uploads    *uploads
	promises   promises
}

// maxLookups is the maximum number of concurrent requests to the API server. Additional requests
// wait. A waiting request uses little memory.
const maxLookups = 32

// slots limits concurrency. Its capacity is the number of slots.
type slots chan struct{}

// take waits for a slot until ctx is done. It returns a function that releases the slot.
func (s slots) take(ctx context.Context) (free func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

func (s *server) close() { s.store.close() }

// target is the object that a registry request refers to.
type target struct {
	route             string // name of distribution's route, such as "manifest"
	namespace, stream string
	reference         string // tag or digest of the manifest
	digest            string // digest of the blob or subject
	upload            string // ID of the blob upload
}

func (t target) repository() string { return t.namespace + "/" + t.stream }

// ServeHTTP serves all of the registry's paths.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte("ok"))
		return
	}
	s.serveRecorded(w, r)
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == tokenPath:
		s.serveToken(w, r)
	case r.URL.Path == "/v2/" || r.URL.Path == "/v2":
		s.serveBase(w, r)
	case strings.HasPrefix(r.URL.Path, signaturesPath):
		s.serveSignatures(w, r)
	case strings.HasPrefix(r.URL.Path, adminBlobsPath):
		s.removeBlob(w, r)
	case r.URL.Path == record.GarbagePath:
		s.removeGarbage(w, r)
	default:
		s.serveProtocol(w, r)
	}
}

func (s *server) serveProtocol(w http.ResponseWriter, r *http.Request) {
	t, err := targetOf(r)
	if err != nil {
		serveError(w, err)
		return
	}
	if t.route == v2.RouteNameCatalog {
		s.serveCatalog(w, r)
		return
	}
	verb, right := "", layers("get", t.namespace, t.stream)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
	case r.Method == http.MethodDelete && t.isTag():
		s.removeTag(w, r, t)
		return
	case r.Method == http.MethodDelete && (t.route == v2.RouteNameManifest || t.route == v2.RouteNameBlob):
		verb, right = "delete", pruning()
	default:
		verb, right = "update", layers("update", t.namespace, t.stream)
	}
	if !s.allowed(w, r, right) {
		return
	}
	store, err := s.store.get()
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	if err := s.claimProject(r.Context(), store, t.namespace); err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	switch {
	case t.route == routeReferrers:
		s.pullReferrers(w, r, store, t)
	case t.route == v2.RouteNameTags:
		s.serveTags(w, r, t)
	case t.route == v2.RouteNameManifest && verb == "":
		s.pullManifest(w, r, store, t)
	case t.route == v2.RouteNameBlob && verb == "":
		s.pullBlob(w, r, store, t)
	case t.route == v2.RouteNameManifest && verb == "update":
		s.pushManifest(w, r, store, t)
	case t.route == v2.RouteNameBlobUpload && verb == "update":
		s.startUpload(w, r, store, t)
	case t.route == v2.RouteNameBlobUploadChunk:
		s.upload(w, r, store, t.namespace)
	default:
		store.ServeHTTP(w, r)
	}
}

// targetOf parses the path of a registry request. Repositories are named `<project>/<stream>`.
func targetOf(r *http.Request) (target, error) {
	if name, subject, ok := referrersPath(r.URL.Path); ok {
		return target{route: routeReferrers, digest: subject}.in(name)
	}
	t, name := routeOf(r)
	switch t.route {
	case "":
		return t, noRoute(r)
	case v2.RouteNameCatalog:
		return t, nil
	}
	return t.in(name)
}

// noRoute returns the error for a path that the protocol does not define. A manifest's path
// contains a tag or a digest. If it contains neither, the error reports an invalid tag for a push,
// and an unknown manifest for other requests.
func noRoute(r *http.Request) error {
	_, reference, isManifest := strings.Cut(r.URL.Path, "/manifests/")
	switch {
	case isManifest && r.Method == http.MethodPut:
		return errcode.ErrorCodeTagInvalid.WithMessage(fmt.Sprintf("%q is not a tag: it has up to 128 letters, digits, dots, dashes and underscores", reference))
	case isManifest:
		return errcode.ErrorCodeManifestUnknown.WithMessage(fmt.Sprintf("%q is neither a tag nor a digest", reference))
	}
	return errcode.ErrorCodeNameUnknown.WithMessage(fmt.Sprintf("no resource exists at %q", r.URL.Path))
}

// routeOf parses a path as distribution does. For paths that distribution does not define, the
// route is empty. The repository can have any name.
func routeOf(r *http.Request) (t target, repository string) {
	var match mux.RouteMatch
	if !v2.Router().Match(r, &match) || match.Route == nil {
		return target{}, ""
	}
	vars := match.Vars
	return target{route: match.Route.GetName(), reference: vars["reference"], digest: vars["digest"], upload: vars["uuid"]}, vars["name"]
}

// in returns the target in another repository. It returns an error if the repository's name is not
// of the form `<project>/<stream>`.
func (t target) in(repository string) (target, error) {
	t.namespace, t.stream, _ = strings.Cut(repository, "/")
	_, err := reference.WithName(repository)
	if err != nil || t.stream == "" || strings.Contains(t.stream, "/") || len(validation.ValidateNamespaceName(t.namespace, false)) > 0 {
		return t, errcode.ErrorCodeNameInvalid.WithMessage(fmt.Sprintf("repository %q is not <project>/<image stream>", repository))
	}
	return t, nil
}

// startUpload starts the upload of a blob. If the caller can read a repository that contains the
// blob, startUpload mounts the blob instead. It accepts parameters only in the query, because
// distribution also reads parameters from a form in the body, and those parameters are not
// authorized.
func (s *server) startUpload(w http.ResponseWriter, r *http.Request, store *store, t target) {
	query := r.URL.Query()
	if from := query.Get("from"); from != "" {
		namespace, stream, _ := strings.Cut(from, "/")
		ok, err := s.may(r.Context(), callerOf(r), layers("get", namespace, stream))
		if ok && err == nil {
			err = s.claimProject(r.Context(), store, namespace)
		}
		if !ok || err != nil || !mountable(query.Get("mount")) {
			query.Del("from")
			query.Del("mount")
			r.URL.RawQuery = query.Encode()
		}
	}
	r.Form, r.PostForm = query, url.Values{}
	s.upload(w, r, store, t.namespace)
}

// mountable reports whether distribution can mount a blob. If the digest's algorithm is not sha256,
// distribution creates a link to missing content.
func mountable(blob string) bool {
	id, err := digest.Parse(blob)
	return err == nil && id.Algorithm() == digest.Canonical
}
