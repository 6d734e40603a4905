package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Membership is the record of a host that joined a cluster, in the file node/membership.json of the
// data directory. It exists when the host has all credentials.
type Membership struct {
	// Masters are the host:port addresses of the API servers.
	Masters []string `json:"masters"`
	// Registry is the host:port address of the image registry, or "".
	Registry string `json:"registry"`
	// Router means that the host runs a router.
	Router bool `json:"router"`
}

func (h *Host) membershipFile() string { return h.path("node", "membership.json") }

// readMembership reads the record of a host that joined; nil if the host is a cluster of its own. A
// user without access to the record has no access to the host either.
func (h *Host) readMembership() (*Membership, error) {
	data, err := os.ReadFile(h.membershipFile())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read membership of the host: %w", err)
	}
	m := &Membership{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read membership of the host %q: %w; restore the file, or remove it to run `slipway down --purge` and join again", h.membershipFile(), err)
	}
	return m, nil
}

func (h *Host) writeMembership(m Membership) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode membership of the host: %w", err)
	}
	return atomicfile.Write(h.membershipFile(), data, 0o600)
}

// Joined reports whether the host joined the cluster of another host. It then runs no control
// plane.
func (h *Host) Joined() bool { return h.membership != nil }

// member describes the credentials of a joined host.
func (h *Host) member() pki.Member {
	m := pki.Member{Dir: h.PKIDir(), URL: h.apiURL("127.0.0.1"), NodeName: h.Node.NodeName}
	m.Router = h.membership != nil && h.membership.Router
	return m
}

// prepareMember is prepare for a joined host.
func (h *Host) prepareMember() error {
	m := h.member()
	if err := m.Check(); err != nil {
		return err
	}
	h.credentials = &pki.Credentials{Files: m.Files()}
	return h.writeRegistryHosts()
}

// memberTable lists what `slipway node` runs on a joined host.
func memberTable() []entry {
	return append(nodeTable(), entry{"certificates", []string{"balancer"}, (*Host).memberCertificates, ""})
}

// memberCertificates renews the certificates of a joined host.
func (h *Host) memberCertificates() (component.Component, error) {
	return &node.Certificates{Member: h.member()}, nil
}

// Processes returns every process of the host with its components, none of which runs.
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
