package platform

import (
	"net"
	"slices"
	"strconv"

	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// nodeURL returns the address of the API in the kubeconfigs of a master's node: the API server of
// the same host or, with several masters, the balancer.
func (h *Host) nodeURL() string {
	if h.SeveralMasters() {
		return "https://" + h.Node.Slipway.BalancerAddress
	}
	return h.apiURL("127.0.0.1")
}

// balancer connects the components of the node to the API servers of all masters. The node of the
// only master needs none, and restarts when the cluster gets others.
func (h *Host) balancer() (component.Component, error) {
	_, port := h.Master.APIAddress()
	if h.Joined() {
		return h.newBalancer(&balancer.Balancer{
			Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Servers: h.membership.Masters, Save: h.saveMembers,
		})
	}
	if !h.SeveralMasters() {
		return balancer.Single{Record: h.clusterFile()}, nil
	}
	own := net.JoinHostPort(h.address.String(), strconv.Itoa(port))
	servers, err := h.mastersFile().Read()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(servers, own) {
		servers = append(servers, own)
	}
	return h.newBalancer(&balancer.Balancer{
		Address: h.Node.Slipway.BalancerAddress, Servers: servers, Preferred: own, Save: h.mastersFile().Save,
	})
}

// newBalancer connects a balancer to the API servers.
func (h *Host) newBalancer(b *balancer.Balancer) (component.Component, error) {
	config, err := readKubeconfig(h.credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	return b, b.Connect(config)
}

// saveMembers stores the addresses of the API servers in the record of a joined host.
func (h *Host) saveMembers(servers []string) error {
	next := *h.membership
	next.Masters = servers
	return next.Write(h.membershipFile())
}

// mastersFile contains the addresses of the API servers that the node of a master last knew.
func (h *Host) mastersFile() balancer.ServerFile {
	return balancer.ServerFile(h.path("node", "masters.json"))
}
