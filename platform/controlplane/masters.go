package controlplane

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/oauth"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/membership"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// elections returns the component that elects the master that runs the controllers. On the only
// master, the component waits until another master joins. Then the control plane restarts with the
// settings for several masters.
func (h *Host) elections() (component.Component, error) {
	if h.leadership != nil {
		return h.leadership, nil
	}
	return masters.Single{Expanded: h.expanded}, nil
}

// etcdMembers returns the component that promotes and removes etcd members.
func (h *Host) etcdMembers() (component.Component, error) {
	if h.Cluster == nil {
		return component.Disabled("etcd-members"), nil
	}
	return &masters.Membership{Members: h.EtcdMembers()}, nil
}

// etcdMaintenance returns the component that defragments etcd's files.
func (h *Host) etcdMaintenance() (component.Component, error) {
	settings := h.Master.Slipway.EtcdMaintenance
	if settings.Disabled {
		return component.Disabled("etcd-maintenance"), nil
	}
	freeSpace, err := settings.FreeBytes()
	if err != nil {
		return nil, fmt.Errorf("read slipway.etcdMaintenance.freeSpace: %w", err)
	}
	maintenance := &kube.EtcdMaintenance{Client: h.EtcdMembers(), Interval: settings.Interval.Duration, FreeSpace: freeSpace}
	if h.Cluster != nil {
		maintenance.Member = h.Node.NodeName
	}
	return maintenance, nil
}

// sharedSettings returns the component that compares the masters' settings.
func (h *Host) sharedSettings() (component.Component, error) {
	if h.Cluster == nil {
		return component.Disabled("shared-settings"), nil
	}
	values, err := h.SharedSettings()
	if err != nil {
		return nil, err
	}
	h.settings = &masters.Settings{Client: h.deps.Kube, Node: h.Node.NodeName, Values: values, Differences: config.Differences}
	return h.settings, nil
}

// admitMaster admits a host to the cluster as a master.
func (h *Host) admitMaster(ctx context.Context, request join.Request) (*join.Master, error) {
	shared := append(pki.SharedFiles(h.PKIDir()), h.DeveloperPassword())
	if oauth := h.Master.OAuthConfig; oauth != nil && oauth.SessionConfig != nil {
		shared = append(shared, oauth.SessionConfig.SessionSecretsFile)
	}
	master := membership.Master{
		DataDir: h.DataDir, NodeName: h.Node.NodeName, Address: h.Address, ConfigFile: h.File, ClusterFile: h.ClusterFile(), Several: h.SeveralMasters(),
		ClientAddress: h.Master.EtcdAddress(), PeerAddress: h.Master.EtcdPeerAddress(), SharedFiles: append(shared, h.HTPasswdFiles()...),
		Members: h.EtcdMembers(), Client: h.deps.Kube, Expand: h.expand,
	}
	return master.Admit(ctx, request)
}

// removeMaster removes a master's etcd member, and removes the master's address from OAuth clients.
func (h *Host) removeMaster(ctx context.Context, node, address string) error {
	if err := masters.Remove(ctx, h.EtcdMembers(), h.deps.Kube, node); err != nil {
		return err
	}
	publicURL := h.APIURL(address)
	if h.Master.OAuthConfig == nil || publicURL == h.PublicURL() { // other masters use it
		return nil
	}
	return oauth.RemoveServer(ctx, h.deps.Dynamic, publicURL)
}

// sharedFiles returns the component that writes files that other masters have changed.
func (h *Host) sharedFiles() (component.Component, error) {
	if h.Cluster == nil {
		return component.Disabled("shared-files"), nil
	}
	return h.SharedFiles(h.deps.Kube), nil
}

// countMasters returns the number of masters that serve the API.
func (h *Host) countMasters() int {
	if h.Cluster == nil {
		return 1
	}
	return masters.CountAPIServers(h.deps.Kube)
}
