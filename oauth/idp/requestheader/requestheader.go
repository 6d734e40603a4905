// Package requestheader is the identity provider RequestHeaderIdentityProvider: a proxy in front of the server authenticates persons and
// says in headers who they are.
//
// Anyone could set a header, so the proxy must show a client certificate of its own authority. Source: OpenShift 3.9 Architecture, 4.1.4.4.
package requestheader

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Provider trusts the headers of one proxy.
type Provider struct {
	// Login and Challenge are the proxy's addresses for browsers and for other clients, with `${url}` and `${query}` in them; empty where it has none.
	Login, Challenge string
	// Authorities verify the proxy's certificate. It is required.
	Authorities *x509.CertPool
	// CommonNames are those that the certificate may have; empty allows each.
	CommonNames []string
	// Headers name the person; of several the first that a request has counts, as for the others: the preferred user name, the full name and the
	// address.
	Headers, PreferredUserNameHeaders, NameHeaders, EmailHeaders []string
}

var _ idp.Request = (*Provider)(nil)

// AuthenticateRequest believes the headers of a request that came with the proxy's certificate.
func (p *Provider) AuthenticateRequest(r *http.Request) (*idp.Identity, error) {
	name := first(r.Header, p.Headers)
	if name == "" || !p.fromProxy(r) {
		return nil, idp.ErrRefused
	}
	return &idp.Identity{
		UserName:          name,
		PreferredUserName: first(r.Header, p.PreferredUserNameHeaders),
		Name:              first(r.Header, p.NameHeaders),
		Email:             first(r.Header, p.EmailHeaders),
	}, nil
}

// fromProxy verifies the client certificate of a request.
func (p *Provider) fromProxy(r *http.Request) bool {
	if p.Authorities == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	shown, between := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, certificate := range r.TLS.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := shown.Verify(x509.VerifyOptions{
		Roots: p.Authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil && (len(p.CommonNames) == 0 || slices.Contains(p.CommonNames, shown.Subject.CommonName))
}

// first is the value of the first header that a request has.
func first(headers http.Header, names []string) string {
	for _, name := range names {
		if value := strings.TrimSpace(headers.Get(name)); value != "" {
			return value
		}
	}
	return ""
}

// LoginURL is the proxy's address for browsers.
func (p *Provider) LoginURL(present *url.URL) string { return fill(p.Login, present) }

// ChallengeURL is the proxy's address for other clients.
func (p *Provider) ChallengeURL(present *url.URL) string { return fill(p.Challenge, present) }

// fill puts the present address, escaped, and its query, as it is, into an address of the proxy.
func fill(address string, present *url.URL) string {
	if address == "" {
		return ""
	}
	return strings.NewReplacer("${url}", url.QueryEscape(present.String()), "${query}", present.RawQuery).Replace(address)
}
