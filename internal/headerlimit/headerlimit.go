// Package headerlimit limits the size of request headers in HTTP servers that upstream creates.
//
// A server keeps the headers of each connection in memory, before it knows the client. Upstream
// accepts a mebibyte, and the kubelet waits for hours until a header is complete. A few thousand
// connections would need more memory than a host has.
package headerlimit

import (
	"net/http"
	"sync"
	"time"
)

const (
	// MaxBytes is the maximum size of a request's URL and headers, in bytes. The longest ones are
	// commands that run in a container, and tokens.
	MaxBytes = 64 << 10
	// Timeout is the maximum time in which a client must send them.
	Timeout = 32 * time.Second
)

// Limiter limits the server that receives the requests. The zero value is ready for use.
type Limiter struct{ once sync.Once }

// Apply limits the server of the first request. Upstream provides no access to its servers before
// they serve requests, but each request has its server in its context. The server reads the fields
// anew for each connection and request.
func (l *Limiter) Apply(r *http.Request) {
	l.once.Do(func() {
		server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
		if !ok {
			return // in tests
		}
		server.MaxHeaderBytes = MaxBytes
		if server.ReadHeaderTimeout == 0 {
			server.ReadHeaderTimeout = Timeout
		}
	})
}

// Handler limits the server that calls it.
func Handler(next http.Handler) http.Handler {
	limiter := &Limiter{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limiter.Apply(r)
		next.ServeHTTP(w, r)
	})
}
