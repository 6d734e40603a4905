package platform

import (
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func (h *Host) membershipFile() string { return h.path("node", "membership.json") }

// Joined reports whether the host has joined another host's cluster as a node. In this case, it
// runs no control plane.
func (h *Host) Joined() bool { return h.membership != nil }

// member describes a joined host's credentials.
func (h *Host) member() pki.Member {
	m := pki.Member{Dir: h.PKIDir(), URL: h.apiURL("127.0.0.1"), NodeName: h.Node.NodeName}
	m.Router = h.membership != nil && h.membership.Router
	return m
}

// prepareMember is the equivalent of prepare for a joined host.
func (h *Host) prepareMember() error {
	m := h.member()
	if err := m.Check(); err != nil {
		return err
	}
	h.credentials = &pki.Credentials{Files: m.Files()}
	return h.writeRegistryHosts()
}

// memberTable lists the components that `slipway node` runs on a joined host.
func memberTable() []entry {
	return append(nodeTable(), entry{"certificates", []string{"balancer"}, (*Host).memberCertificates, ""})
}

// memberCertificates returns the component that renews a joined host's certificates.
func (h *Host) memberCertificates() (component.Component, error) {
	return &node.Certificates{Member: h.member()}, nil
}

// Processes returns all processes on the host and their components, all marked as not running.
func (h *Host) Processes() []supervisor.ProcessStatus {
	runtime := supervisor.ProcessStatus{Name: Containerd, State: component.Stopped, Components: statusOf([]entry{{name: Containerd}})}
	if h.Joined() {
		return []supervisor.ProcessStatus{
			runtime, {Name: Node, State: component.Stopped, Components: statusOf(memberTable())},
		}
	}
	return []supervisor.ProcessStatus{
		{Name: ControlPlane, State: component.Stopped, Components: statusOf(controlPlaneTable())},
		runtime,
		{Name: Node, State: component.Stopped, Components: statusOf(nodeTable())},
	}
}
