package host

import (
	"context"

	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/membership"
)

// Join adds this host to a master's cluster and returns the host's role. The host must not have a
// cluster yet. The token determines whether the host becomes a node or a master. url is the URL of
// the master's API server. If Join fails, either the host has not joined or the error explains how
// to continue. The next Load reads the result.
func (h *Host) Join(ctx context.Context, url string, token join.Token, router bool) (role string, err error) {
	host := h.joining()
	if err := host.CheckNew(); err != nil {
		return "", err
	}
	if err := h.findAddress(); err != nil {
		return "", err
	}
	host.Address, host.PeerURL = h.Address, h.peerURL()
	return host.Join(ctx, url, token, router)
}

// Rejoin updates a host that has already joined as a node. It updates the host's list of masters
// and its settings. If there is a token for the node, it also updates the host's certificates. The
// next Load reads the result.
func (h *Host) Rejoin(ctx context.Context, url string, token *join.Token) error {
	if err := h.findAddress(); err != nil {
		return err
	}
	host := h.joining()
	host.Address = h.Address
	return host.Rejoin(ctx, url, token)
}

func (h *Host) joining() *membership.Host {
	return &membership.Host{
		Config: h.Config, Credentials: h.Member(),
		Membership: h.Membership, MembershipFile: h.MembershipFile(), Cluster: h.Cluster, ClusterFile: h.ClusterFile(),
	}
}
