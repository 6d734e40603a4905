package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Own tells whether an address is the build's own machine's or its link's, where services trust whoever reaches them, such as a cloud's
// metadata. No repository is there.
func Own(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()
}

// connectTimeout is how long a server may take to accept a connection, and to begin to answer.
const connectTimeout = 2 * time.Minute

// Web is how servers are asked over http and https.
type Web struct {
	// Authority is a certificate authority in PEM form, beside the system's; Insecure believes any certificate.
	Authority []byte
	Insecure  bool
	Proxy     Proxy
	// Forbidden tells which addresses are not asked; Own is for builds.
	Forbidden func(netip.Addr) bool
}

// client asks at each connection where that leads, so that neither a redirection nor a name that changes its address gets past it.
func (w Web) client() (*http.Client, error) {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return w.allowed(to.Addr())
	}}
	trust := &tls.Config{InsecureSkipVerify: w.Insecure}
	if len(w.Authority) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(w.Authority) {
			return nil, errors.New("the source secret's ca.crt has no certificate in PEM form")
		}
		trust.RootCAs = pool
	}
	proxy := (&httpproxy.Config{HTTPProxy: w.Proxy.HTTP, HTTPSProxy: w.Proxy.HTTPS, NoProxy: w.Proxy.No}).ProxyFunc()
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: connectTimeout,
		ForceAttemptHTTP2: true, Proxy: func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
	}}, nil
}

// allowed is an error if nothing that a build needs can be at an address.
func (w Web) allowed(ip netip.Addr) error {
	if w.Forbidden(ip) {
		return fmt.Errorf("the URL leads to %s, an address of the building machine itself, which builds may not ask", ip)
	}
	return nil
}

// ErrNotThere says that a server has no such file.
var ErrNotThere = errors.New("the server has no such file")

// Download reads a small file of at most a megabyte. Errors: ErrNotThere.
func (w Web) Download(ctx context.Context, from string) ([]byte, error) {
	const most = 1 << 20
	client, err := w.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("download %q: %w", Anonymous(from), ErrNotThere)
	default:
		return nil, fmt.Errorf("download %q: the server answers %q", Anonymous(from), response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err == nil && len(data) > most {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("download %q: %w", Anonymous(from), err)
	}
	return data, nil
}
