// Package apitest provides an in-memory API server for controller tests. It serves real HTTP, so a
// test can fail or interrupt any request. It implements the rules that controllers depend on:
// resource versions, preconditions, finalizers, the status subresource and watches. It supports the
// types in client-go's scheme. It checks neither permissions nor values.
package apitest

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Server is an in-memory API server.
type Server struct {
	// WriteTime is added to the duration of every write, like etcd's disk latency. Set it before
	// the first request.
	WriteTime time.Duration

	http *httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	version int64
	objects map[string]map[string]object // by collection, and then by namespace and name
	history []change
	counts  map[string]int
	stopped bool
}

// object is the JSON of an API object.
type object = map[string]any

// change is a watch event.
type change struct {
	version    int64
	collection string
	kind       string // ADDED, MODIFIED or DELETED
	object     object
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	s, stop := Serve()
	t.Cleanup(stop)
	return s
}

// Serve runs a server until stop is called.
func Serve() (s *Server, stop func()) {
	s = &Server{objects: map[string]map[string]object{}, counts: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	s.http = httptest.NewUnstartedServer(s)
	s.http.EnableHTTP2 = true // like a real API server, use one connection for all requests
	s.http.StartTLS()
	return s, func() {
		s.stop()
		s.http.Close()
	}
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.changed.Broadcast()
}

// Config returns a client configuration for the server.
func (s *Server) Config() *rest.Config {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	return &rest.Config{Host: s.http.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// Requests returns the number of requests, keyed by verb and resource, such as "patch
// persistentvolumes" or "patch volumeattachments/status".
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for key, n := range s.counts {
		counts[key] = n
	}
	return counts
}

// Count returns the number of a resource's objects for which matches returns true, or the number of
// all its objects if matches is nil. Requests does not include calls to Count.
func (s *Server) Count(resource string, matches func(*unstructured.Unstructured) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for collection, objects := range s.objects {
		if !strings.HasSuffix(collection, "/"+resource) {
			continue
		}
		for _, o := range objects {
			if matches == nil || matches(meta(o)) {
				n++
			}
		}
	}
	return n
}

// target is the object or collection that a request addresses.
type target struct {
	verb, group, version, resource, namespace, name, subresource string
}

func (t target) collection() string { return t.group + "/" + t.resource }

func (t target) key() string { return t.namespace + "/" + t.name }

func (t target) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.group, Resource: t.resource}
}

// parse parses the paths /api/v1/... and /apis/<group>/<version>/... .
func parse(r *http.Request) (t target, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	t.verb = strings.ToLower(r.Method)
	switch {
	case t.verb == "get" && r.URL.Query().Get("watch") != "":
		t.verb = "watch"
	case t.verb == "get" && t.name == "":
		t.verb = "list"
	case t.verb == "post":
		t.verb = "create"
	case t.verb == "put":
		t.verb = "update"
	}
	return t, true
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := parse(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.count(t)
	if t.verb == "watch" {
		s.watch(w, r, t)
		return
	}
	if t.verb != "list" && t.verb != "get" {
		select {
		case <-time.After(s.WriteTime):
		case <-r.Context().Done():
			return
		}
	}
	result, err := s.do(r, t)
	if err != nil {
		fail(w, err)
		return
	}
	respond(w, http.StatusOK, result)
}

func (s *Server) count(t target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := t.resource
	if t.subresource != "" {
		resource += "/" + t.subresource
	}
	s.counts[t.verb+" "+resource]++
}

func (s *Server) do(r *http.Request, t target) (any, error) {
	body, err := read(r, t)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t.verb {
	case "list":
		return s.list(t), nil
	case "get":
		return s.get(t)
	case "create":
		return s.create(t, body)
	case "update":
		return s.update(t, body)
	case "patch":
		return s.patch(t, r.Header.Get("Content-Type"), body)
	case "delete":
		return s.delete(t, body)
	default:
		return nil, apierrors.NewMethodNotSupported(t.groupResource(), t.verb)
	}
}

func fail(w http.ResponseWriter, err error) {
	statusError, ok := err.(apierrors.APIStatus)
	if !ok {
		statusError = apierrors.NewInternalError(err)
	}
	status := statusError.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	respond(w, int(status.Code), status)
}

func respond(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// meta provides access to an object's metadata.
func meta(o object) *unstructured.Unstructured { return &unstructured.Unstructured{Object: o} }

func text(version int64) string { return strconv.FormatInt(version, 10) }
