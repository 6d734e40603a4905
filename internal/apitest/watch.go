package apitest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watch sends the changes that follow a resource version until the request ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, t target) {
	query := r.URL.Query()
	if query.Get("sendInitialEvents") != "" {
		// Streaming lists are not supported. Clients fall back to ordinary lists.
		fail(w, apierrors.NewBadRequest("streaming lists are not supported"))
		return
	}
	since, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		fail(w, apierrors.NewBadRequest("resourceVersion: "+err.Error()))
		return
	}
	defer context.AfterFunc(r.Context(), s.wake)()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	encoder := json.NewEncoder(w)
	for position := 0; ; {
		events, next, ok := s.next(r.Context(), t, since, position)
		if !ok {
			return
		}
		position = next
		for _, event := range events {
			if encoder.Encode(object{"type": event.kind, "object": event.object}) != nil {
				return
			}
		}
		flusher.Flush()
	}
}

// next waits for changes to a collection, starting at a position in the history. ok is false if the
// watch should end.
func (s *Server) next(ctx context.Context, t target, since int64,
	position int) (events []change, next int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if ctx.Err() != nil || s.stopped {
			return nil, 0, false
		}
		for ; position < len(s.history); position++ {
			c := s.history[position]
			inNamespace := t.namespace == "" || strings.HasPrefix(meta(c.object).GetNamespace(), t.namespace)
			if c.version > since && c.collection == t.collection() && inNamespace {
				events = append(events, c)
			}
		}
		if len(events) > 0 {
			return events, position, true
		}
		s.changed.Wait()
	}
}

// wake causes each watch to check whether it must end.
func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}
