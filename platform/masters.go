package platform

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/oauth"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/membership"
	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// errIncomplete is the error for an interrupted join. If the host started in this state, it would
// create a separate cluster with the keys of the cluster that it was joining.
var errIncomplete = errors.New("the join of this host as a master was interrupted: repeat `slipway up --join`, or remove everything with `slipway down --purge`")

func (h *Host) clusterFile() string { return h.path("master", "cluster.json") }

// SeveralMasters reports whether this host is one of several masters.
func (h *Host) SeveralMasters() bool { return h.cluster != nil }

func (h *Host) writeCluster(c record.Cluster) error { return c.Write(h.clusterFile()) }

// usesRemoteRegistry reports whether this host uses a registry that another master runs.
func (h *Host) usesRemoteRegistry() bool {
	return h.cluster != nil && h.cluster.Registry != "" && !h.sharesRegistry()
}

// peerURL returns the URL at which other etcd members connect to this host's member.
func (h *Host) peerURL() string {
	return "https://" + hostaddr.Reachable(h.Master.EtcdPeerAddress(), h.address)
}

// EtcdMembers returns the client that manages etcd members.
func (h *Host) EtcdMembers() etcdmember.Client {
	files := pki.FilesIn(h.PKIDir())
	return etcdmember.Client{
		Socket: h.etcdSocket(), CertFile: files.EtcdClient.Cert, KeyFile: files.EtcdClient.Key, CAFile: files.EtcdCA.Cert,
	}
}

// EtcdEndpoint returns the URL at which clients on this host connect to its etcd member.
func (h *Host) EtcdEndpoint() string { return h.Master.EtcdEndpoint(h.SeveralMasters()) }

// elections returns the component that elects the master that runs the controllers. On the only
// master, the component waits until another master joins. Then the control plane restarts as one of
// several masters.
func (h *Host) elections() (component.Component, error) {
	if h.leadership != nil {
		return h.leadership, nil
	}
	return masters.Single{Expanded: h.expanded}, nil
}

// etcdMembers returns the component that promotes and removes etcd members.
func (h *Host) etcdMembers() (component.Component, error) {
	if h.cluster == nil {
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
	if h.cluster != nil {
		maintenance.Member = h.Node.NodeName
	}
	return maintenance, nil
}

// sharedSettings returns the component that compares the masters' settings.
func (h *Host) sharedSettings() (component.Component, error) {
	if h.cluster == nil {
		return component.Disabled("shared-settings"), nil
	}
	values, err := h.SharedSettings()
	if err != nil {
		return nil, err
	}
	h.mastersSettings = &masters.Settings{Client: h.deps.Kube, Node: h.Node.NodeName, Values: values, Differences: config.Differences}
	return h.mastersSettings, nil
}

// admitMaster admits a host to the cluster as a master.
func (h *Host) admitMaster(ctx context.Context, request join.Request) (*join.Master, error) {
	shared := append(pki.SharedFiles(h.PKIDir()), h.DeveloperPassword())
	if oauth := h.Master.OAuthConfig; oauth != nil && oauth.SessionConfig != nil {
		shared = append(shared, oauth.SessionConfig.SessionSecretsFile)
	}
	master := membership.Master{
		DataDir: h.DataDir, NodeName: h.Node.NodeName, Address: h.address, ConfigFile: h.file, ClusterFile: h.clusterFile(), Several: h.SeveralMasters(),
		PeerAddress: h.Master.EtcdPeerAddress(), SharedFiles: append(shared, h.HTPasswdFiles()...),
		Members: h.EtcdMembers(), Client: h.deps.Kube, Expand: h.expand,
	}
	return master.Admit(ctx, request)
}

// removeMaster removes a master's etcd member, and removes the master's address from OAuth clients.
func (h *Host) removeMaster(ctx context.Context, node, address string) error {
	if err := masters.Remove(ctx, h.EtcdMembers(), h.deps.Kube, node); err != nil {
		return err
	}
	publicURL := h.apiURL(address)
	if h.Master.OAuthConfig == nil || publicURL == h.publicURL() { // the remaining masters use it
		return nil
	}
	return oauth.RemoveServer(ctx, h.deps.Dynamic, publicURL)
}
