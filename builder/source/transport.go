package source

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/git"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
)

// install registers this repository's transports with go-git. The transports are global, which is
// safe because a builder process builds only one image.
func (g *Git) install(ctx context.Context) error {
	web, err := g.web()
	if err != nil {
		return err
	}
	client.InstallProtocol("http", githttp.NewClient(web))
	client.InstallProtocol("https", githttp.NewClient(web))
	client.InstallProtocol("ssh", guarded{ssh.DefaultClient, ctx, g.checkAddress})
	client.InstallProtocol("git", guarded{git.DefaultClient, ctx, g.checkAddress})
	client.InstallProtocol("file", nil)
	return nil
}

// web returns the client for HTTP and HTTPS repositories.
func (g *Git) web() (*http.Client, error) {
	return Web{Authority: g.Secret.Authority, Insecure: g.Secret.Insecure, Proxy: g.Proxy, Forbidden: g.Forbidden}.client()
}

// checkAddress returns an error if connections to an address are forbidden.
func (g *Git) checkAddress(ip netip.Addr) error { return Web{Forbidden: g.Forbidden}.checkAddress(ip) }

// guarded is a transport that checks the addresses of a host before it opens a connection.
type guarded struct {
	transport.Transport
	ctx          context.Context // go-git's interface passes no context
	checkAddress func(netip.Addr) error
}

func (t guarded) NewUploadPackSession(to *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(t.ctx, "ip", to.Host)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if err := t.checkAddress(address); err != nil {
			return nil, err
		}
	}
	return t.Transport.NewUploadPackSession(to, auth)
}
