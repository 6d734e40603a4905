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

// LocalAddress reports whether an address is on the build's own machine or link. Builds must not
// connect to these addresses, because services there, such as a cloud's metadata service, trust
// every client. Repositories never have such addresses.
func LocalAddress(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()
}

// connectTimeout is the maximum time to connect to a server, and the maximum time to wait for the
// response headers.
const connectTimeout = 2 * time.Minute

// Web configures HTTP and HTTPS clients.
type Web struct {
	// Authority is a PEM-encoded CA bundle that is trusted in addition to the system's CAs.
	// Insecure disables certificate verification.
	Authority []byte
	Insecure  bool
	Proxy     Proxy
	// Forbidden reports whether connections to an address are forbidden. Builds use LocalAddress.
	Forbidden func(netip.Addr) bool
}

// client returns a client that checks the address of each connection, so that neither a redirect
// nor a changed DNS record can bypass the check.
func (w Web) client() (*http.Client, error) {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return w.checkAddress(to.Addr())
	}}
	tlsConfig := &tls.Config{InsecureSkipVerify: w.Insecure}
	if len(w.Authority) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(w.Authority) {
			return nil, errors.New("the source secret's ca.crt contains no PEM-encoded certificate")
		}
		tlsConfig.RootCAs = pool
	}
	proxy := (&httpproxy.Config{HTTPProxy: w.Proxy.HTTP, HTTPSProxy: w.Proxy.HTTPS, NoProxy: w.Proxy.No}).ProxyFunc()
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: connectTimeout,
		ForceAttemptHTTP2: true, Proxy: func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
	}}, nil
}

// checkAddress returns an error if an address is forbidden.
func (w Web) checkAddress(ip netip.Addr) error {
	if w.Forbidden(ip) {
		return fmt.Errorf("the URL leads to %s, an address of the build's own machine, which builds must not access", ip)
	}
	return nil
}

const maxDownloadBytes = 1 << 20

// ErrNotExist means that a file does not exist on a server.
var ErrNotExist = errors.New("the file does not exist on the server")

// Download returns the content of a file, which must not exceed 1 MiB. If the file does not exist
// on the server, the error is ErrNotExist.
func (w Web) Download(ctx context.Context, from string) ([]byte, error) {
	client, err := w.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("download %q: %w", Anonymous(from), ErrNotExist)
	default:
		return nil, fmt.Errorf("download %q: the server responded with %q", Anonymous(from), resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDownloadBytes+1))
	if err == nil && len(data) > maxDownloadBytes {
		err = errors.New("it is larger than a megabyte")
	}
	if err != nil {
		return nil, fmt.Errorf("download %q: %w", Anonymous(from), err)
	}
	return data, nil
}
