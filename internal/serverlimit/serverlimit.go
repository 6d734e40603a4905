// Package serverlimit limits the memory that connections to an HTTP server can occupy, for servers
// that upstream creates.
//
// Even before a server has authenticated a client, it keeps in memory the headers, frames and data
// that no handler has read yet. Upstream accepts 1 MiB of headers and 25 MiB of data for each
// connection, and the kubelet waits for hours until headers are complete. A few thousand
// connections would need more memory than a host has.
package serverlimit

import (
	"net/http"
	"sync"
	"time"
)

const (
	// MaxHeaderBytes is the maximum size of a request's URL and headers, in bytes. Tokens, and
	// commands to run in a container, take up the most space.
	MaxHeaderBytes = 64 << 10
	// headerTimeout is how long a client has to send a request's URL and headers.
	headerTimeout = 32 * time.Second
	// maxFrame is the maximum size of an HTTP/2 frame, in bytes. It is the protocol's minimum.
	maxFrame = 16 << 10
	// maxStreams is the maximum number of a connection's concurrent HTTP/2 streams. It is upstream's
	// default.
	maxStreams = 100
	// RequestBuffer is a buffer size for streams with small request bodies, in bytes (see HTTP2).
	RequestBuffer = 64 << 10
	// UploadBuffer is a buffer size for streams with large request bodies from distant clients, in
	// bytes. A client can send one buffer in each round trip.
	UploadBuffer = 256 << 10
)

// Limiter limits the server that receives the requests. The zero value is ready for use.
type Limiter struct{ once sync.Once }

// Apply limits the server that receives the first request. Upstream provides no access to its
// servers before they serve requests, but each request has its server in its context. The server
// reads the fields again for each connection.
func (l *Limiter) Apply(r *http.Request) {
	l.once.Do(func() {
		server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
		if !ok {
			return // the request does not come from an http.Server, as in tests
		}
		server.MaxHeaderBytes = MaxHeaderBytes
		if server.ReadHeaderTimeout == 0 {
			server.ReadHeaderTimeout = headerTimeout
		}
		server.HTTP2 = HTTP2(RequestBuffer)
	})
}

// HTTP2 returns the limits for HTTP/2 connections. buffer is the maximum size of a stream's data
// that no handler has read yet, in bytes. The buffers of all streams fit into the connection's
// buffer, because a stream whose handler waits must not delay the other streams.
func HTTP2(buffer int) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerStream: buffer, MaxReceiveBufferPerConnection: maxStreams * buffer,
	}
}

// Handler limits the server that calls it.
func Handler(next http.Handler) http.Handler {
	limiter := &Limiter{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limiter.Apply(r)
		next.ServeHTTP(w, r)
	})
}
