package platform

import (
	"net"
	"net/netip"
	"strconv"

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
	address, err := hostaddr.HostAddress(preferred, h.ignoredDevices()...)
	if err != nil && preferred == "" {
		address, err = hostaddr.AssignOffline(OfflineDevice)
	}
	if err != nil {
		return err
	}
	h.address = address
	if h.Master.DualStack().Enabled() {
		h.second, err = hostaddr.Second(address, h.ignoredDevices()...)
	}
	return err
}

// publicAddress returns the address at which other machines can connect to this machine. If the
// machine has only an IPv6 address, its IPv4 address is a local address.
func (h *Host) publicAddress() netip.Addr {
	if h.address == hostaddr.OfflineAddress && h.second.IsValid() {
		return h.second
	}
	return h.address
}

// ignoredDevices returns the network devices that Slipway creates. Their addresses are not the
// machine's addresses.
func (h *Host) ignoredDevices() []string {
	return []string{h.Node.Slipway.Bridge, h.Node.Slipway.DNSDevice, h.Node.Slipway.VXLANDevice}
}

// names returns the names of this machine: its node name and all addresses.
func (h *Host) names() []string {
	names := []string{h.Node.NodeName}
	for _, address := range hostaddr.HostAddresses(h.ignoredDevices()...) {
		names = append(names, address.String())
	}
	return names
}

// apiURL returns the URL of the API server with one of the machine's names as the host.
func (h *Host) apiURL(name string) string {
	_, port := h.Master.APIAddress()
	return "https://" + net.JoinHostPort(name, strconv.Itoa(port))
}
