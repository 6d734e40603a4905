package host

import (
	"context"
	"log/slog"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/platform/recovery"
)

// ownEtcd returns this host's etcd member.
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

// LostMembers returns the other etcd members after checking that this host can continue without
// them. If force is set, it does not check that the other members are unreachable.
func (h *Host) LostMembers(ctx context.Context, force bool) ([]etcdmember.Member, error) {
	own, err := h.ownEtcd()
	if err != nil {
		return nil, err
	}
	return own.Lost(ctx, force)
}

// ResetEtcd records that etcd must continue with only this host's data. The reset takes effect when
// the control plane next starts. From then on, this host runs the registry, even if a different
// master ran it before.
func (h *Host) ResetEtcd() error { return h.writeCluster(record.Cluster{Complete: true, Reset: true}) }

// EtcdResetDone records that a reset is complete.
func (h *Host) EtcdResetDone() error {
	slog.Warn("etcd continues with the data of this host alone")
	return h.writeCluster(record.Cluster{Complete: true})
}

// EtcdResetPending reports whether an etcd reset has been requested but not yet completed.
func (h *Host) EtcdResetPending() bool { return h.Cluster != nil && h.Cluster.Reset }
