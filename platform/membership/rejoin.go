package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// Rejoin updates a host that has already joined a cluster as a node, for example because the
// addresses of the masters have changed. url is the URL of a master's API server. The host's
// certificate authenticates the host. If a token for the node is given, the host also receives new
// certificates. If Rejoin fails, the host keeps its previous certificates.
func (h *Host) Rejoin(ctx context.Context, url string, token *join.Token) error {
	if h.Address == hostaddr.OfflineAddress {
		return errOffline
	}
	m, node := h.Credentials, h.Config.Node
	request := join.Request{
		Role: join.RoleNode, NodeName: node.NodeName, Address: h.Address.String(), DNSDomain: node.DNSDomain,
		NoRouter: !m.Router, Version: version.Slipway(),
	}
	master, authority, err := h.connect(ctx, url, token)
	if err != nil {
		return err
	}
	if token != nil {
		request.Token = token.String()
	}
	response, err := master.Join(ctx, authority, request)
	if err != nil {
		return err
	}
	if err := config.CheckNodeSettings(response.Settings); err != nil {
		return err
	}
	if m.URL, err = localURL(response.Masters); err != nil {
		return err
	}
	if token != nil {
		err = h.requestCredentials(ctx, m, url, *token, authority, response)
	} else {
		err = errors.Join(m.WriteAuthorities(authority, []byte(response.ServiceCA)), m.WriteKubeconfigs())
	}
	if err != nil {
		return err
	}
	if err := config.WriteSettings(h.Config.DataDir, response.Settings); err != nil {
		return err
	}
	return record.Membership{Masters: response.Masters, Registry: response.Registry, Router: m.Router}.Write(h.MembershipFile)
}

// connect returns a client for a master, and the cluster's CA certificate in PEM format. Without a
// token, it returns the CA certificate that the host received when it joined.
func (h *Host) connect(ctx context.Context, url string, token *join.Token) (join.Client, []byte, error) {
	master := join.Client{URL: url}
	if token != nil {
		master.Token = *token
		authority, err := master.Authority(ctx)
		return master, authority, err
	}
	authority, err := os.ReadFile(h.Credentials.Files().NodeCA)
	if err != nil {
		return master, nil, fmt.Errorf("read certificate authority: %w", err)
	}
	master.Certificate, err = h.Credentials.Certificate(time.Now())
	return master, authority, err
}
