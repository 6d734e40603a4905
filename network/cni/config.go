package cni

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/slipway-platform/slipway/network/nat"
)

// Config is the plugin's network configuration (CNI specification 1.1, section 1), which the agent
// writes. The container runtime adds the keys runtimeConfig, prevResult and cni.dev.
type Config struct {
	CNIVersion   string          `json:"cniVersion,omitempty"`
	Name         string          `json:"name,omitempty"`
	Type         string          `json:"type"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`

	Bridge string `json:"bridge"`        // bridge for pods
	MTU    int    `json:"mtu,omitempty"` // in bytes; the default is the MTU of the bridge
	// PodCIDR is this host's pod subnet. The subnet's first address is the bridge's address.
	PodCIDR netip.Prefix `json:"podCIDR"`
	// SecondCIDR is this host's IPv6 pod subnet; optional. A pod's address has the same offset in
	// both subnets.
	SecondCIDR netip.Prefix `json:"secondCIDR,omitzero"`
	// StateDir is the state directory. The leases are in a subdirectory that is named after the
	// network.
	StateDir string `json:"stateDir"`
	NFTTable string `json:"nftTable"` // the nftables table of package nat
	// PolicySocket is the Unix socket of the component that enforces network policies. If
	// PolicySocket is set, ADD succeeds only after the component enforces the policies of the new
	// pod.
	PolicySocket string `json:"policySocket,omitempty"`
	// ClusterNetworks lists the networks that a pod with a macvlan device reaches through the
	// gateway, regardless of its default route.
	ClusterNetworks []netip.Prefix `json:"clusterNetworks,omitempty"`
	// Hairpin makes the bridge send frames back to the port they came from.
	Hairpin bool `json:"hairpin,omitempty"`

	RuntimeConfig struct {
		PortMappings []portMapping `json:"portMappings,omitempty"`
		Bandwidth    bandwidth     `json:"bandwidth,omitzero"`
		// Annotations contains the pod's annotations. containerd and CRI-O provide them as a
		// capability.
		Annotations map[string]string `json:"io.kubernetes.cri.pod-annotations,omitempty"`
	} `json:"runtimeConfig,omitzero"`
	PrevResult       map[string]any       `json:"prevResult,omitempty"`
	ValidAttachments []types.GCAttachment `json:"cni.dev/valid-attachments,omitempty"`
}

// portMapping is one entry of the portMappings capability (CNI conventions document).
type portMapping struct {
	HostPort      int    `json:"hostPort"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

// bandwidth is the bandwidth capability (CNI conventions document), in bits per second. The plugin
// ignores the burst sizes, because containerd's default burst size lets a pod send 512 MiB without
// a limit.
type bandwidth struct {
	IngressRate uint64 `json:"ingressRate,omitempty"`
	EgressRate  uint64 `json:"egressRate,omitempty"`
}

// Gateway returns the first address of a host's subnet, which is the bridge's address and the pods'
// gateway.
func Gateway(podCIDR netip.Prefix) netip.Addr { return podCIDR.Masked().Addr().Next() }

// ends contains a pod's address and its gateway's address.
type ends struct{ address, gateway netip.Addr }

// ends returns a pod's addresses, each with its gateway's address. A pod that was created before
// the host had a second subnet has only one address.
func (c Config) ends(l lease) []ends {
	list := []ends{{l.Address, Gateway(c.PodCIDR)}}
	if second := c.second(l); second.IsValid() {
		list = append(list, ends{second, Gateway(c.SecondCIDR)})
	}
	return list
}

// published returns the number of host ports that are forwarded to a pod's addresses.
func (c Config) published(l lease) (count int) {
	for _, e := range c.ends(l) {
		for _, port := range l.Ports {
			if port.LeadsTo(e.address) {
				count++
			}
		}
	}
	return count
}

// second returns a pod's IPv6 address, or an invalid address if the pod has none in the current
// IPv6 subnet.
func (c Config) second(l lease) netip.Addr {
	if !c.SecondCIDR.Contains(l.SecondAddress) {
		return netip.Addr{}
	}
	return l.SecondAddress
}

// capacity returns the number of pod addresses in a subnet: all addresses except the network,
// gateway and broadcast addresses.
func capacity(podCIDR netip.Prefix) int {
	return 1<<(podCIDR.Addr().BitLen()-podCIDR.Bits()) - 3
}

func parse(data []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, types.NewError(types.ErrDecodingFailure, "parse network configuration: "+err.Error(), "")
	}
	if err := c.validate(); err != nil {
		return Config{}, types.NewError(types.ErrInvalidNetworkConfig, "check network configuration: "+err.Error(), "")
	}
	return c, nil
}

func (c Config) validate() error {
	for _, key := range []struct{ name, value string }{
		{"bridge", c.Bridge}, {"stateDir", c.StateDir}, {"nftTable", c.NFTTable}, {"name", c.Name},
	} {
		if key.value == "" {
			return fmt.Errorf("key %q is missing", key.name)
		}
	}
	if !c.PodCIDR.IsValid() || !c.PodCIDR.Addr().Is4() {
		return fmt.Errorf("podCIDR %q is not an IPv4 subnet", c.PodCIDR)
	}
	if bits := c.PodCIDR.Bits(); bits < 8 || bits > 29 {
		return fmt.Errorf("podCIDR %q: prefix length must be 8 to 29", c.PodCIDR)
	}
	if second := c.SecondCIDR; second.IsValid() && (!second.Addr().Is6() || 128-second.Bits() < 32-c.PodCIDR.Bits()) {
		return fmt.Errorf("secondCIDR %q is not an IPv6 subnet of at least the size of %s", second, c.PodCIDR)
	}
	return nil
}

func (c Config) leases() leases {
	return leases{dir: LeaseDir(c.StateDir, c.Name), subnet: c.PodCIDR.Masked(), second: c.SecondCIDR}
}

// ports returns the port mappings. As in the CNI project's own plugin, an unspecified host address
// means all addresses of its family.
func (c Config) ports() ([]nat.Port, error) {
	var ports []nat.Port
	for _, m := range c.RuntimeConfig.PortMappings {
		port, ok, err := m.port()
		if err != nil {
			return nil, types.NewError(types.ErrInvalidNetworkConfig, "parse port mapping: "+err.Error(), "")
		}
		if ok {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

func (m portMapping) port() (nat.Port, bool, error) {
	if m.HostPort == 0 { // a container port without a host port
		return nat.Port{}, false, nil
	}
	for _, n := range []int{m.HostPort, m.ContainerPort} {
		if n < 1 || n > 65535 {
			return nat.Port{}, false, fmt.Errorf("port %d is not in 1..65535", n)
		}
	}
	p := nat.Port{HostPort: uint16(m.HostPort), ContainerPort: uint16(m.ContainerPort), Protocol: strings.ToLower(m.Protocol)}
	switch p.Protocol {
	case "":
		p.Protocol = "tcp"
	case "tcp", "udp", "sctp":
	default:
		return nat.Port{}, false, fmt.Errorf("protocol %q is not tcp, udp or sctp", m.Protocol)
	}
	if m.HostIP == "" {
		return p, true, nil
	}
	address, err := netip.ParseAddr(m.HostIP)
	if err != nil {
		return nat.Port{}, false, fmt.Errorf("host address %q: %w", m.HostIP, err)
	}
	p.HostAddress = address.Unmap()
	return p, true, nil
}
