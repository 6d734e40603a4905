package registry

import (
	"io"
	"maps"
	"net/http"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
)

// blobPath returns the storage path of the content with the given digest.
func blobPath(id digest.Digest) string {
	return path.Join(blobsDir, id.Algorithm().String(), id.Encoded()[:2], id.Encoded(), "data")
}

// serveBlob serves a blob. Distribution checks access and sets the headers. If the blob is a file,
// serveBlob sends the file itself, and the kernel copies it if there is no TLS. Distribution's own
// handler copies the file through a 4 MiB buffer for each client.
func (s *store) serveBlob(w http.ResponseWriter, r *http.Request) {
	t, _ := routeOf(r)
	w = named(w, t.digest)
	if r.Method != http.MethodGet || !s.files {
		s.Handler.ServeHTTP(w, r)
		return
	}
	request := r.Clone(r.Context())
	request.Method = http.MethodHead
	for _, condition := range []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		request.Header.Del(condition)
	}
	response := &pendingBlob{header: http.Header{}}
	s.Handler.ServeHTTP(response, request)
	id, err := digest.Parse(response.header.Get("Docker-Content-Digest"))
	if response.status != http.StatusOK || err != nil {
		response.release(w)
		return
	}
	content, err := s.driver.Reader(r.Context(), blobPath(id), 0)
	if err != nil { // the blob was just removed, or the disk has failed
		s.Handler.ServeHTTP(w, r)
		return
	}
	defer content.Close()
	file, ok := content.(io.ReadSeeker)
	if !ok {
		s.Handler.ServeHTTP(w, r)
		return
	}
	response.header.Del("Content-Length") // it contains the length of the whole blob
	response.header.Del("Accept-Ranges")
	maps.Copy(w.Header(), response.header)
	http.ServeContent(w, r, "", time.Time{}, file)
}
