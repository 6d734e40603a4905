package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/git"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
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

// install makes go-git use the transports of this repository. It knows transports of the process only; a process builds one thing.
func (g *Git) install(ctx context.Context) error {
	web, err := g.web()
	if err != nil {
		return err
	}
	client.InstallProtocol("http", githttp.NewClient(web))
	client.InstallProtocol("https", githttp.NewClient(web))
	client.InstallProtocol("ssh", guarded{ssh.DefaultClient, ctx, g.forbidden})
	client.InstallProtocol("git", guarded{git.DefaultClient, ctx, g.forbidden})
	client.InstallProtocol("file", nil)
	return nil
}

// web is the client for http and https. It asks at each connection where that leads, so that neither a redirection nor a name that changes its
// address gets past it.
func (g *Git) web() (*http.Client, error) {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.forbidden(to.Addr())
	}}
	trust := &tls.Config{InsecureSkipVerify: g.Secret.Insecure} //nolint: what the secret's .gitconfig says
	if len(g.Secret.Authority) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(g.Secret.Authority) {
			return nil, errors.New("the source secret's ca.crt has no certificate in PEM form")
		}
		trust.RootCAs = pool
	}
	proxy := (&httpproxy.Config{HTTPProxy: g.Proxy.HTTP, HTTPSProxy: g.Proxy.HTTPS, NoProxy: g.Proxy.No}).ProxyFunc()
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: trust, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: connectTimeout,
		ForceAttemptHTTP2: true, Proxy: func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
	}}, nil
}

// forbidden is an error if no repository can be at an address.
func (g *Git) forbidden(ip netip.Addr) error {
	if g.Forbidden(ip) {
		return fmt.Errorf("the repository leads to %s, an address of the building machine itself, which builds may not ask", ip)
	}
	return nil
}

// guarded is a transport that connects by itself: the addresses of a host are checked before.
type guarded struct {
	transport.Transport
	ctx       context.Context // go-git's interface has none
	forbidden func(netip.Addr) error
}

func (t guarded) NewUploadPackSession(to *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(t.ctx, "ip", to.Host)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if err := t.forbidden(address); err != nil {
			return nil, err
		}
	}
	return t.Transport.NewUploadPackSession(to, auth)
}
