package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/record"
)

// peerTimeout limits a request to a member of etcd that is probably lost.
const peerTimeout = 3 * time.Second

// LostMembers returns the other members of etcd, after checks that this host can continue without
// them: it has a vote, no member leads, and no other member responds. With force, it skips the last
// check.
func (h *Host) LostMembers(ctx context.Context, force bool) ([]etcdmember.Member, error) {
	if h.cluster == nil {
		return nil, errors.New("this host is the only master, so that no other one can be lost; to go back to former data, use `slipway etcd snapshot restore`")
	}
	if err := h.findAddress(); err != nil {
		return nil, err
	}
	client := h.EtcdMembers()
	leading, cancel := context.WithTimeout(ctx, peerTimeout)
	_, err := client.List(leading)
	cancel()
	if err == nil {
		return nil, errors.New("etcd works: a majority of its members responds; to remove a lost master, use `oc delete node`")
	}
	members, err := h.knownMembers(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := kube.CheckReset(members, h.Node.NodeName); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(members, func(m etcdmember.Member) bool { return m.Name == h.Node.NodeName })
	if force {
		return others, nil
	}
	if alive := h.aliveMembers(ctx, others); len(alive) > 0 {
		return nil, fmt.Errorf("etcd still runs on %s: repair the connections between the masters instead; if this is impossible, stop Slipway there for ever and use --force", strings.Join(alive, ", "))
	}
	return others, nil
}

// aliveMembers returns the names of the other members that respond.
func (h *Host) aliveMembers(ctx context.Context, members []etcdmember.Member) (names []string) {
	for _, m := range members {
		if m.Name == h.Node.NodeName {
			continue
		}
		if _, err := peerMembers(ctx, h.EtcdMembers(), m.PeerURL); err == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// knownMembers returns the members that the own member has recorded. It can run, without a quorum.
func (h *Host) knownMembers(ctx context.Context, client etcdmember.Client) ([]etcdmember.Member, error) {
	members, err := peerMembers(ctx, client, h.peerURL())
	if err == nil {
		return members, nil
	}
	members, storedErr := kube.StoredMembers(h.Master.EtcdDirectory())
	if storedErr != nil {
		return nil, errors.Join(storedErr, err)
	}
	return members, nil
}

func peerMembers(ctx context.Context, client etcdmember.Client, url string) ([]etcdmember.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return kube.PeerMembers(ctx, client, url)
}

// ResetEtcd records that etcd continues with the data of this host alone. It takes effect at the
// next start of the control plane. From then on, this host runs the registry, whichever master ran
// it before.
func (h *Host) ResetEtcd() error { return h.writeCluster(record.Cluster{Complete: true, Reset: true}) }

// etcdResetDone records the end of a reset.
func (h *Host) etcdResetDone() error {
	slog.Warn("etcd continues with the data of this host alone")
	return h.writeCluster(record.Cluster{Complete: true})
}

// EtcdResetPending reports whether the control plane has not finished a reset.
func (h *Host) EtcdResetPending() bool { return h.cluster != nil && h.cluster.Reset }
