package hosts

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/pki"
)

// userOfNode is the prefix of the users of nodes, and groupOfNodes is their group.
const (
	userOfNode   = "system:node:"
	groupOfNodes = "system:nodes"
)

// refreshInterval limits the age of the register that the guard uses.
const refreshInterval = time.Second

// backdating is the time by which certificates are backdated: those of Kubernetes' signers, and
// those that a master issues to itself.
const backdating = pki.Backdating

// guard rejects the certificates of removed hosts, and certificates that a host got before it
// joined again.
type guard struct {
	register register
	ownNode  string
	// authority returns the cluster's certificate authority in PEM.
	authority func() ([]byte, error)

	mu      sync.Mutex
	hosts   map[string]Host
	checked time.Time
}

// filter rejects requests with revoked certificates. Requests without a certificate of a joined
// host cost nothing.
func (g *guard) filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			cert := r.TLS.PeerCertificates[0]
			node := nodeOf(cert)
			if node != "" && node != g.ownNode && g.void(r.Context(), node, cert) {
				http.Error(w, "the host has been removed from the cluster; run `slipway leave` on it", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
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

// void reports whether the host of a certificate is removed, or joined again after the certificate
// was issued.
//
// The time of the removal alone does not decide: for a moment, the host can still request
// certificates, and they are issued later.
func (g *guard) void(ctx context.Context, node string, cert *x509.Certificate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refresh(ctx, refreshInterval)
	issued := cert.NotBefore.Add(backdating)
	if host := g.hosts[node]; host.removed() && !issued.Before(host.Removed.Time) && g.isIssued(cert) {
		g.refresh(ctx, 0) // the host might have joined again just now
	}
	host := g.hosts[node]
	return host.removed() || host.Removed != nil && issued.Before(host.Joined.Time)
}

// isIssued reports whether the cluster has issued a certificate. The guard runs before
// authentication, and anyone can create a certificate with the name of a removed host: such
// requests must not make those of other hosts wait for etcd.
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

// refresh reads the register if the copy is older than maxAge.
func (g *guard) refresh(ctx context.Context, maxAge time.Duration) {
	if time.Since(g.checked) <= maxAge {
		return
	}
	hosts, err := g.register.read(ctx)
	if err != nil {
		// Nodes continue to work with the previous state while etcd is not available.
		slog.Warn("the register of removed hosts is not current", "error", err)
		return
	}
	g.hosts, g.checked = hosts, time.Now()
}
