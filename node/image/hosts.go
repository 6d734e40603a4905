package image

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/errdefs"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// hosts determines the servers of registries and guards connections to them.
type hosts struct {
	dir    string
	dialer *outbound.Dialer
}

// defaultDir is the directory whose hosts.toml applies to all registries that do not have a
// hosts.toml.
const defaultDir = "_default"

// of returns a registry's servers, from its hosts.toml if the file exists.
func (h hosts) of(ctx context.Context, credentials credentialsFunc) docker.RegistryHosts {
	return func(registry string) ([]docker.RegistryHost, error) {
		dialer := h.dialer
		options := config.HostOptions{HostDir: config.HostDirFromRoot(h.dir), Credentials: credentials}
		options.UpdateClient = func(client *http.Client) error { return guard(client, dialer) }
		configured, err := config.ConfigureHosts(ctx, options)(registry)
		if err != nil {
			return nil, fmt.Errorf("read hosts.toml: %w", err)
		}
		dir, err := options.HostDir(registry)
		if errdefs.IsNotFound(err) {
			return limited(configured), nil
		}
		if err != nil {
			return nil, fmt.Errorf("find hosts.toml: %w", err)
		}
		// Allow connections to the administrator's servers, regardless of their addresses. The file
		// for all registries does not specify the registry itself, so do not exempt the registry in
		// this case.
		for _, host := range configured {
			if host.Host != registry || filepath.Base(dir) != defaultDir {
				dialer = dialer.With(host.Host)
			}
		}
		configured, err = config.ConfigureHosts(ctx, options)(registry)
		return limited(configured), err
	}
}

// limited limits the size of responses from the servers that issue tokens for registries.
func limited(servers []docker.RegistryHost) []docker.RegistryHost {
	for i := range servers {
		servers[i].Authorizer = limitedAuthorizer{servers[i].Authorizer}
	}
	return servers
}

// guard makes a client connect through the dialer and limits the size of responses. Clients for
// several servers can share a transport.
func guard(client *http.Client, dialer *outbound.Dialer) error {
	switch transport := client.Transport.(type) {
	case *http.Transport:
		client.Transport = &limitedTransport{dialer.TransportTLS(transport.TLSClientConfig)}
	case *limitedTransport:
	default:
		return fmt.Errorf("guard connections to registries: transport is %T", transport)
	}
	return nil
}
