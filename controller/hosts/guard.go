package hosts

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/pki"
)

// userOfNode is the username prefix of nodes, and groupOfNodes is their group.
const (
	userOfNode   = "system:node:"
	groupOfNodes = "system:nodes"
)

// refreshInterval is the maximum age of the guard's copy of the register.
const refreshInterval = time.Second

// backdating is how far certificates are backdated. It applies to certificates from the Kubernetes
// signers and to certificates that a master issues to itself.
const backdating = pki.Backdating

// watchRefreshTimeout is the timeout for reading the register on behalf of other hosts' watches.
const watchRefreshTimeout = 500 * time.Millisecond

// guard rejects the certificates of removed hosts, and certificates that a host obtained before it
// joined again. It also ends the open watches of removed hosts.
type guard struct {
	register register
	ownNode  string
	// authority returns the cluster's CA certificate in PEM format.
	authority func() ([]byte, error)

	mu      sync.Mutex
	hosts   map[string]Host
	checked time.Time
	watches map[*watch]bool
}

// watch is an open watch of a joined host.
type watch struct {
	node string
	cert *x509.Certificate
	end  context.CancelFunc
}

// filter rejects requests with revoked certificates. It adds no cost to requests without a node's
// certificate.
func (g *guard) filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			cert := r.TLS.PeerCertificates[0]
			switch node := nodeOf(cert); {
			case node == "":
			case node == g.ownNode:
				g.refreshWatches(r.Context())
			case g.void(r.Context(), node, cert):
				http.Error(w, "the host has been removed from the cluster; run `slipway leave` on it", http.StatusUnauthorized)
				return
			case isWatch(r):
				ctx, end := context.WithCancel(r.Context())
				defer g.open(&watch{node, cert, end})()
				r = r.WithContext(ctx)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isWatch reports whether a request can start a watch: it has the watch query parameter, or uses a
// deprecated path such as /api/v1/watch/pods.
func isWatch(r *http.Request) bool {
	return r.URL.Query().Has("watch") || slices.Contains(strings.Split(r.URL.Path, "/"), "watch")
}

// open adds an open watch, which ends when its host is removed. The returned function must be
// called when the request has ended.
func (g *guard) open(w *watch) (closed func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watches == nil {
		g.watches = map[*watch]bool{}
	}
	g.watches[w] = true
	return func() {
		w.end()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watches, w)
	}
}

// refreshWatches ends the watches of removed hosts. It is called for requests from this host's own
// node, so that a watch ends even if no joined host sends a request.
func (g *guard) refreshWatches(ctx context.Context) {
	if !g.mu.TryLock() {
		return // another request is refreshing the register
	}
	defer g.mu.Unlock()
	if len(g.watches) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchRefreshTimeout)
	defer cancel()
	g.refresh(ctx, refreshInterval)
}

// nodeOf returns the name of the node to which a client certificate belongs, or "".
func nodeOf(cert *x509.Certificate) string {
	if name, ok := strings.CutPrefix(cert.Subject.CommonName, userOfNode); ok {
		return name
	}
	for _, unit := range cert.Subject.OrganizationalUnit {
		if name, ok := strings.CutPrefix(unit, userOfNode); ok {
			return name
		}
	}
	return ""
}

// void reports whether a certificate's host has been removed, or has joined again since the
// certificate was issued.
//
// Comparing the certificate's time with the removal time is not sufficient. For a moment after its
// removal, a host can still request certificates, which are issued later.
func (g *guard) void(ctx context.Context, node string, cert *x509.Certificate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refresh(ctx, refreshInterval)
	issued := cert.NotBefore.Add(backdating)
	if host := g.hosts[node]; host.removed() && !issued.Before(host.Removed.Time) && g.isIssued(cert) {
		g.refresh(ctx, 0) // the host might have joined again just now
	}
	return g.hosts[node].rejects(cert)
}

// rejects reports whether a certificate of the host is no longer valid.
func (h Host) rejects(cert *x509.Certificate) bool {
	return h.removed() || h.Removed != nil && cert.NotBefore.Add(backdating).Before(h.Joined.Time)
}

// isIssued reports whether the cluster has issued a certificate. The check is necessary because the
// guard runs before authentication, and anyone can create a certificate with the name of a removed
// host. Requests with such certificates must not make requests from other hosts wait for etcd.
func (g *guard) isIssued(cert *x509.Certificate) bool {
	data, err := g.authority()
	if err != nil {
		slog.Warn("cannot read certificate authority", "error", err)
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// refresh reads the register if the guard's copy is older than maxAge, and ends the watches of
// removed hosts.
func (g *guard) refresh(ctx context.Context, maxAge time.Duration) {
	if time.Since(g.checked) <= maxAge {
		return
	}
	hosts, err := g.register.read(ctx)
	if err != nil {
		// While etcd is unavailable, nodes continue to work with the previous state.
		slog.Warn("cannot update the list of removed hosts", "error", err)
		return
	}
	g.hosts, g.checked = hosts, time.Now()
	for w := range g.watches {
		if hosts[w.node].rejects(w.cert) {
			w.end()
		}
	}
}
