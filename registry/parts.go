package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// addParts adds a pushed manifest's layers and configuration to an image stream's repository. It
// adds a part if the part is missing from the repository and clients can pull it from the stream.
// Clients do not push content that the registry already serves, even if the content is in another
// repository or registry. Distribution reports parts that are still missing.
func (s *server) addParts(r *http.Request, store *store, t target, manifest []byte) error {
	if store.readOnly {
		return nil
	}
	for _, id := range record.References(manifest) {
		if store.hasBlob(r.Context(), t.repository(), id) {
			continue
		}
		part := t
		part.digest = id.String()
		at, ok, err := s.findBlob(r.Context(), part)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s.promises.make(t.repository(), id)
		if at.remote != "" {
			err = s.copyPart(r, store, part, at)
		} else {
			err = s.linkPart(r.Context(), store, part, at.repository, id)
		}
		if err != nil {
			return fmt.Errorf("add blob %q to repository %q: %w", id, t.repository(), err)
		}
	}
	return nil
}

// linkPart adds a link to a blob in another repository.
func (s *server) linkPart(ctx context.Context, store *store, t target, from string, id digest.Digest) error {
	content := store.target(ctx, path.Join(linkDir(from, layersDir, id), linkFile))
	if content == "" {
		return nil
	}
	if err := s.guard.take(ctx, store, t.namespace, entryBytes); err != nil {
		return err
	}
	return store.driver.PutContent(ctx, path.Join(linkDir(t.repository(), layersDir, id), linkFile), []byte(content))
}

// copyPart copies a blob from another registry into the repository.
func (s *server) copyPart(r *http.Request, store *store, t target, at source) error {
	if s.isLoop(r) {
		return leadsBack(t, at)
	}
	content, size, err := s.client(r, t, at, nil).Blob(r.Context(), at.remote, t.digest)
	if err != nil {
		return err
	}
	defer content.Close()
	return s.mirror(r.Context(), io.Discard, content, store, t, size)
}
