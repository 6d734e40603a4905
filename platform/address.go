package platform

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/slipway-platform/slipway/network/hostaddr"
)

// OfflineDevice is the network device with the address of a machine that has no other.
const OfflineDevice = "slipway-offline"

// findAddress finds the machine's address, and its IPv6 address if pods have such addresses. A
// machine without one gets a local address, so that a cluster runs without a network.
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

// publicAddress returns the address at which other machines reach this one. A machine with only an
// IPv6 address has a local IPv4 address.
func (h *Host) publicAddress() netip.Addr {
	if h.address == hostaddr.OfflineAddress && h.second.IsValid() {
		return h.second
	}
	return h.address
}

// ignoredDevices returns Slipway's network devices, whose addresses are not the machine's.
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

// apiURL returns the URL of the API server under one of the machine's names.
func (h *Host) apiURL(name string) string {
	_, port := h.Master.APIAddress()
	return "https://" + net.JoinHostPort(name, strconv.Itoa(port))
}
