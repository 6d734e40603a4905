// Package requestheader implements RequestHeaderIdentityProvider: a proxy in front of the server
// authenticates users and sets headers.
//
// Any client can set headers. Therefore, the proxy must have a client certificate that a configured
// CA has signed. Source: OpenShift 3.9 Architecture, 4.1.4.4.
package requestheader

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Provider trusts the headers set by one proxy.
type Provider struct {
	// Login and Challenge are the proxy's URLs for browsers and for other clients, with `${url}`
	// and `${query}`. They are optional.
	Login, Challenge string
	// Authorities is the CA pool that verifies the proxy's client certificate. It is required.
	Authorities *x509.CertPool
	// CommonNames contains the allowed common names of the certificate. If it is empty, all names
	// are allowed.
	CommonNames []string
	// Headers lists the headers that can contain the user name. The provider uses the first header
	// that the request contains. The other fields list the headers for the preferred user name, the
	// full name and the email address.
	Headers, PreferredUserNameHeaders, NameHeaders, EmailHeaders []string
}

var _ idp.Request = (*Provider)(nil)

// AuthenticateRequest returns the identity in the request headers. It returns idp.ErrRefused if the
// request has no user name or was not sent with the proxy's client certificate.
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

// fromProxy reports whether a request has a valid client certificate for the proxy.
func (p *Provider) fromProxy(r *http.Request) bool {
	if p.Authorities == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	cert, between := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, certificate := range r.TLS.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: p.Authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil && (len(p.CommonNames) == 0 || slices.Contains(p.CommonNames, cert.Subject.CommonName))
}

// first returns the value of the first named header that a request has.
func first(headers http.Header, names []string) string {
	for _, name := range names {
		if value := strings.TrimSpace(headers.Get(name)); value != "" {
			return value
		}
	}
	return ""
}

// LoginURL returns the proxy's URL for browsers.
func (p *Provider) LoginURL(present *url.URL) string { return fill(p.Login, present) }

// ChallengeURL returns the proxy's URL for other clients.
func (p *Provider) ChallengeURL(present *url.URL) string { return fill(p.Challenge, present) }

// fill replaces `${url}` with the escaped current URL and `${query}` with its query.
func fill(address string, present *url.URL) string {
	if address == "" {
		return ""
	}
	return strings.NewReplacer("${url}", url.QueryEscape(present.String()), "${query}", present.RawQuery).Replace(address)
}
