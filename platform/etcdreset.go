package platform

import (
	"context"
	"log/slog"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/platform/recovery"
)

// ownEtcd returns the member of etcd of this host.
func (h *Host) ownEtcd() (recovery.Etcd, error) {
	own := recovery.Etcd{
		Client: h.EtcdMembers(), Dir: h.Master.EtcdDirectory(), Name: h.Node.NodeName,
		PeerURL: "https://" + h.Master.EtcdPeerAddress(), Several: h.SeveralMasters(),
	}
	if !own.Several {
		return own, nil
	}
	if err := h.findAddress(); err != nil {
		return own, err
	}
	own.PeerURL = h.peerURL()
	return own, nil
}

// LostMembers returns the other members of etcd, after checks that this host can continue without
// them. With force, they may respond.
func (h *Host) LostMembers(ctx context.Context, force bool) ([]etcdmember.Member, error) {
	own, err := h.ownEtcd()
	if err != nil {
		return nil, err
	}
	return own.Lost(ctx, force)
}

// ResetEtcd records that etcd continues with the data of this host alone. It takes effect at the
// next start of the control plane. From then on, this host runs the registry, even if another
// master ran it before.
func (h *Host) ResetEtcd() error { return h.writeCluster(record.Cluster{Complete: true, Reset: true}) }

// etcdResetDone records the end of a reset.
func (h *Host) etcdResetDone() error {
	slog.Warn("etcd continues with the data of this host alone")
	return h.writeCluster(record.Cluster{Complete: true})
}

// EtcdResetPending reports whether the control plane has not finished a reset.
func (h *Host) EtcdResetPending() bool { return h.cluster != nil && h.cluster.Reset }
