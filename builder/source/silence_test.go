package source

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestSilentSourceTimesOut(t *testing.T) {
	limit := func() *Limit { return &Limit{Bytes: 1 << 20, Files: 10, SilenceTimeout: 20 * time.Millisecond} }
	never, writer := io.Pipe()
	t.Cleanup(func() { writer.Close() })
	if _, err := extract(t, never, limit()); !errors.Is(err, errSilent) {
		t.Errorf("a silent upload: %v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s := newServer(t)
	g := s.clone("")
	g.URL, g.Limit = server.URL+"/app/.git", limit()
	if _, err := g.Clone(t.Context(), t.TempDir()); !errors.Is(err, errSilent) {
		t.Errorf("a silent server: %v", err)
	}
}
