package registry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// invalidURL is distribution's error for a layer with a URL that the configuration does not allow.
const invalidURL = "invalid URL on layer"

// manifestTypes lists the media types of the manifests that the registry stores.
var manifestTypes = []string{
	ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex,
	string(types.DockerManifestSchema2), string(types.DockerManifestList),
}

// readManifest serves a stored manifest. If the request accepts all media types, readManifest
// serves the manifest unchanged. Without this, distribution converts or rejects the manifest.
func (s *store) readManifest(w http.ResponseWriter, r *http.Request) {
	if accept := r.Header.Values("Accept"); len(accept) == 0 || strings.Contains(strings.Join(accept, ","), "*/*") {
		r = r.Clone(r.Context())
		r.Header["Accept"] = slices.Concat(accept, manifestTypes)
	}
	s.Handler.ServeHTTP(w, r)
}

// putManifest stores a manifest in a repository under a tag or a digest, and sends the response.
// Unlike distribution, it records the manifest's subject and supports digests with algorithms other
// than sha256. It stores the content under its sha256 digest, and adds a link with the other
// digest. Distribution does the same for layers.
func (s *store) putManifest(w http.ResponseWriter, r *http.Request, repository, reference string,
	manifest []byte) {
	id := digest.FromBytes(manifest)
	name, err := digest.Parse(reference)
	if err != nil {
		name = id // the reference is a tag
	}
	if name != id && name.Algorithm().FromBytes(manifest) != name {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithMessage("the digest of the manifest is not "+reference))
		return
	}
	subject := subjectOf(manifest)
	if subject != "" && subject.Validate() != nil {
		serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage("the digest of the subject is not valid"))
		return
	}
	if subject != "" && !s.readOnly {
		if err := s.noteReferrer(r.Context(), repository, subject, id); err != nil {
			serveProblem(w, err)
			return
		}
	}
	request := r.Clone(r.Context())
	if name != id {
		request = redirect(r, repository, "manifests", id.String())
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(manifest)), int64(len(manifest))
	response := &pendingBlob{header: http.Header{}}
	s.Handler.ServeHTTP(response, request)
	if response.status >= http.StatusInternalServerError && full(response.body.Bytes()) {
		serveFull(w, fullMessage)
		return
	}
	if response.status >= http.StatusInternalServerError && bytes.Contains(response.body.Bytes(), []byte(invalidURL)) {
		serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage("the registry does not allow the URL of a layer (validation.manifests.urls)"))
		return
	}
	if response.status == http.StatusCreated && name != id {
		if err := s.driver.PutContent(r.Context(), path.Join(linkDir(repository, revisionsDir, name), linkFile), []byte(id)); err != nil {
			serveProblem(w, fmt.Errorf("link manifest: %w", err))
			return
		}
		rename(response.header, name)
	}
	if response.status == http.StatusCreated && subject != "" {
		response.header.Set("OCI-Subject", subject.String())
	}
	response.release(w)
}
