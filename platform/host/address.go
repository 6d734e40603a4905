package host

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/console"
	"github.com/slipway-platform/slipway/network/hostaddr"
)

// OfflineDevice is the name of the network device that has the local address on a machine without
// another address.
const OfflineDevice = "slipway-offline"

// findAddress finds the machine's IPv4 address and, if pods have IPv6 addresses, its IPv6 address.
// It assigns a local address to a machine without an address, so that a cluster can run without a
// network.
func (h *Host) findAddress() error {
	preferred := h.Node.NodeIP
	address, err := hostaddr.HostAddress(preferred, h.IgnoredDevices()...)
	if err != nil && preferred == "" {
		address, err = hostaddr.AssignOffline(OfflineDevice)
	}
	if err != nil {
		return err
	}
	h.Address = address
	if h.Master.DualStack().Enabled() {
		h.SecondAddress, err = hostaddr.Second(address, h.IgnoredDevices()...)
	}
	return err
}

// PublicAddress returns the address at which other machines can connect to this machine. If the
// machine has only an IPv6 address, its IPv4 address is a local address.
func (h *Host) PublicAddress() netip.Addr {
	if h.Address == hostaddr.OfflineAddress && h.SecondAddress.IsValid() {
		return h.SecondAddress
	}
	return h.Address
}

// IgnoredDevices returns the network devices that Slipway creates. Their addresses are not the
// machine's addresses.
func (h *Host) IgnoredDevices() []string {
	return []string{h.Node.Slipway.Bridge, h.Node.Slipway.DNSDevice, h.Node.Slipway.VXLANDevice}
}

// Names returns the names of this machine: its node name and all addresses.
func (h *Host) Names() []string {
	names := []string{h.Node.NodeName}
	for _, address := range hostaddr.HostAddresses(h.IgnoredDevices()...) {
		names = append(names, address.String())
	}
	return names
}

// APIURL returns the URL of the API server with one of the machine's names as the host.
func (h *Host) APIURL(name string) string {
	_, port := h.Master.APIAddress()
	return "https://" + net.JoinHostPort(name, strconv.Itoa(port))
}

// nodeURL returns the API server URL in the kubeconfigs of a master's node. With one master, it is
// the URL of the API server on the same host. With several masters, it is the URL of the balancer.
func (h *Host) nodeURL() string {
	if h.SeveralMasters() {
		return "https://" + h.Node.Slipway.BalancerAddress
	}
	return h.APIURL("127.0.0.1")
}

// ConsoleURL returns the URL of the web console for browsers, or "" if there is no OAuth server.
// Until the machine's address is known, the URL works only in browsers on the machine itself.
func (h *Host) ConsoleURL() string {
	switch {
	case h.Master.OAuthConfig == nil:
		return ""
	case h.Master.OAuthConfig.MasterPublicURL == "" && !h.Address.IsValid():
		return h.APIURL("localhost") + console.Path
	}
	return h.PublicURL() + console.Path
}

// PublicURL returns the URL of the API server for browsers and clients.
func (h *Host) PublicURL() string {
	if configured := h.Master.OAuthConfig.MasterPublicURL; configured != "" {
		return strings.TrimRight(configured, "/")
	}
	return h.APIURL(h.PublicAddress().String())
}
