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

// web is the client for http and https.
func (g *Git) web() (*http.Client, error) {
	return Web{Authority: g.Secret.Authority, Insecure: g.Secret.Insecure, Proxy: g.Proxy, Forbidden: g.Forbidden}.client()
}

// forbidden is an error if no repository can be at an address.
func (g *Git) forbidden(ip netip.Addr) error { return Web{Forbidden: g.Forbidden}.allowed(ip) }

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
