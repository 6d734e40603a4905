package host

import (
	"errors"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/record"
)

// errIncomplete is the error for an interrupted join. If the host started in this state, it would
// create a separate cluster with the keys of the cluster that it was joining.
var errIncomplete = errors.New("the join of this host as a master was interrupted: repeat `slipway up --join`, or remove everything with `slipway down --purge`")

// ClusterFile returns the path of the file that stores Cluster.
func (h *Host) ClusterFile() string { return h.Path("master", "cluster.json") }

// SeveralMasters reports whether this host is one of several masters.
func (h *Host) SeveralMasters() bool { return h.Cluster != nil }

func (h *Host) writeCluster(c record.Cluster) error { return c.Write(h.ClusterFile()) }

// UsesRemoteRegistry reports whether this host uses a registry that another master runs.
func (h *Host) UsesRemoteRegistry() bool {
	return h.Cluster != nil && h.Cluster.Registry != "" && !h.SharesRegistry()
}

// peerURL returns the URL at which other etcd members connect to this host's member.
func (h *Host) peerURL() string {
	return "https://" + hostaddr.Reachable(h.Master.EtcdPeerAddress(), h.Address)
}

// EtcdMembers returns the client that manages etcd members.
func (h *Host) EtcdMembers() etcdmember.Client {
	files := pki.FilesIn(h.PKIDir())
	return etcdmember.Client{
		Socket: h.EtcdSocket(), CertFile: files.EtcdClient.Cert, KeyFile: files.EtcdClient.Key, CAFile: files.EtcdCA.Cert,
	}
}

// EtcdEndpoint returns the URL at which clients on this host connect to its etcd member.
func (h *Host) EtcdEndpoint() string { return h.Master.EtcdEndpoint(h.SeveralMasters()) }
