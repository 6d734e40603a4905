package registry

import (
	"context"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// pullReferrers serves the referrers of an image in a stream. These are the referrers that were
// pushed to this registry and, for an image in another registry, the referrers in the other
// registry. It caches the location of the other registry's referrers for later requests.
func (s *server) pullReferrers(w http.ResponseWriter, r *http.Request, store *store, t target) {
	image := t
	image.reference = t.digest
	at, ok, err := s.find(r.Context(), image)
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
		return
	}
	if !ok || at.source.remote == "" {
		store.serveReferrers(w, r, t.repository(), t.digest, nil)
		return
	}
	if s.isLoop(r) {
		serveError(w, leadsBack(t, at.source))
		return
	}
	store.serveReferrers(w, r, t.repository(), t.digest, func(subject digest.Digest) ([]ocispec.Descriptor, error) {
		account := s.Remotes.Join(t.namespace)
		defer account.Close()
		ctx, cancel := context.WithTimeout(r.Context(), remoteTimeout)
		defer cancel()
		manifests, err := s.client(r, t, at.source, account).Referrers(ctx, at.source.remote, subject.String())
		var ids []string
		for _, referrer := range manifests {
			ids = append(ids, referrer.Digest.String())
		}
		s.blobs.add(t.repository(), ids, at.source)
		return manifests, err
	})
}
