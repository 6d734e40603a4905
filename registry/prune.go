package registry

import (
	"net/http"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/opencontainers/go-digest"
)

// adminBlobsPath is where `oc adm prune images` removes blobs.
const adminBlobsPath = "/admin/blobs/"

// removeBlob removes a blob from the disk, whoever refers to it: pruning has found that nobody does.
func (s *server) removeBlob(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodDelete {
		w.Header().Set("Allow", http.MethodDelete)
		http.Error(w, "use DELETE", http.StatusMethodNotAllowed)
		return
	}
	if !s.allowed(w, r, pruning()) {
		return
	}
	id, err := digest.Parse(strings.TrimPrefix(r.URL.Path, adminBlobsPath))
	if err != nil {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithDetail(err.Error()))
		return
	}
	store, err := s.store.get()
	if err == nil && s.ReadOnly {
		err = errcode.ErrorCodeUnsupported.WithMessage("the registry is read-only")
	}
	if err == nil {
		err = storage.NewVacuum(r.Context(), store.driver).RemoveBlob(id.String())
	}
	if err != nil {
		serveError(w, errcode.ErrorCodeUnknown.WithMessage("remove blob: "+err.Error()))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
