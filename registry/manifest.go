package registry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
)

// putManifest stores a manifest in a repository under a tag or a digest, and sends the response. In
// addition to distribution, it records the subject of the manifest and supports digests of other
// algorithms than sha256: the content is stored under sha256, and a link with the other digest
// refers to it, as distribution does for layers.
func (s *store) putManifest(w http.ResponseWriter, r *http.Request, repository, reference string,
	manifest []byte) {
	id := digest.FromBytes(manifest)
	name, err := digest.Parse(reference)
	if err != nil {
		name = id // reference is a tag
	}
	if name != id && name.Algorithm().FromBytes(manifest) != name {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithMessage("the manifest has another digest than "+reference))
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
	answer := &held{header: http.Header{}}
	s.Handler.ServeHTTP(answer, request)
	if answer.status >= http.StatusInternalServerError && full(answer.body.Bytes()) {
		serveFull(w, fullMessage)
		return
	}
	if answer.status == http.StatusCreated && name != id {
		if err := s.driver.PutContent(r.Context(), path.Join(linkDir(repository, revisionsDir, name), linkFile), []byte(id)); err != nil {
			serveProblem(w, fmt.Errorf("link manifest: %w", err))
			return
		}
		answer.header.Set("Docker-Content-Digest", name.String())
		answer.header.Set("Location", strings.Replace(answer.header.Get("Location"), id.String(), name.String(), 1))
	}
	if answer.status == http.StatusCreated && subject != "" {
		answer.header.Set("OCI-Subject", subject.String())
	}
	answer.release(w)
}
