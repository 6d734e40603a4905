package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/nodeconfig"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
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
	if err := h.CheckMember(); err != nil {
		return err
	}
	h.credentials = &pki.Credentials{Files: m.Files()}
	return h.writeRegistryHosts()
}

// CheckMember returns an error if a joined host's credentials are missing or have expired. The
// error contains the remedy. On other hosts, CheckMember returns nil.
func (h *Host) CheckMember() error {
	if !h.Joined() {
		return nil
	}
	m := h.member()
	if err := m.Check(); err != nil {
		return err
	}
	_, err := m.Certificate(time.Now())
	return err
}

// memberTable lists the components that `slipway node` runs on a joined host.
func memberTable() []entry {
	return append(nodeTable(),
		entry{"certificates", []string{"balancer"}, (*Host).memberCertificates, ""},
		entry{"cluster-settings", []string{"balancer"}, (*Host).clusterSettings, ""},
	)
}

// memberCertificates returns the component that renews a joined host's certificates.
func (h *Host) memberCertificates() (component.Component, error) {
	return &node.Certificates{Member: h.member()}, nil
}

// clusterSettings returns the component that updates a joined host's copy of the cluster's
// settings.
func (h *Host) clusterSettings() (component.Component, error) {
	authority, err := os.ReadFile(h.credentials.NodeCA)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	m := h.member()
	request := join.Request{
		Role: join.RoleNode, NodeName: h.Node.NodeName, Address: h.address.String(), DNSDomain: h.Node.DNSDomain, Version: version.Slipway(),
	}
	return &nodeconfig.ClusterSettings{
		File: config.MasterFile(h.DataDir), Check: config.CheckNodeSettings, MasterServes: h.masterServes,
		Fetch: func(ctx context.Context) (string, error) {
			certificate, err := m.Certificate(time.Now())
			if err != nil {
				return "", err
			}
			response, err := join.Client{URL: m.URL, Certificate: certificate}.Join(ctx, authority, request)
			if err == nil && response.SettingsDiffer {
				err = errors.New("the masters have different settings; see `slipway status` on the masters")
			}
			if err != nil {
				return "", err
			}
			return response.Settings, nil
		},
	}, nil
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
