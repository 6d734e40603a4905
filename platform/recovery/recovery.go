// Package recovery continues etcd on one master: with its own data after the loss of the other
// masters, or with a snapshot.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/kube"
)

// peerTimeout limits a request to a member of etcd that is probably lost.
const peerTimeout = 3 * time.Second

// Etcd is the member of etcd of this host.
type Etcd struct {
	// Client has the credentials of the member, and its socket.
	Client etcdmember.Client
	// Dir is the data directory.
	Dir string
	// Name and PeerURL identify the member.
	Name, PeerURL string
	// Several means that the host is one of several masters.
	Several bool
}

// Lost returns the other members, after checks that this one can continue without them: it has a
// vote, no member leads, and no other member responds. With force, it skips the last check.
func (e Etcd) Lost(ctx context.Context, force bool) ([]etcdmember.Member, error) {
	if !e.Several {
		return nil, errors.New("this host is the only master, so no other master can be lost; to return to earlier data, use `slipway etcd snapshot restore`")
	}
	leading, cancel := context.WithTimeout(ctx, peerTimeout)
	_, err := e.Client.List(leading)
	cancel()
	if err == nil {
		return nil, errors.New("etcd works: a majority of its members responds; to remove a lost master, use `oc delete node`")
	}
	members, err := e.recordedMembers(ctx)
	if err != nil {
		return nil, err
	}
	if err := kube.CheckReset(members, e.Name); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(members, func(m etcdmember.Member) bool { return m.Name == e.Name })
	if force {
		return others, nil
	}
	if alive := e.alive(ctx, others); len(alive) > 0 {
		return nil, fmt.Errorf("etcd still runs on %s: repair the connections between the masters instead; if this is impossible, stop Slipway there permanently and use --force", strings.Join(alive, ", "))
	}
	return others, nil
}

// Restore replaces the data of etcd with a snapshot; the member does not run. The member is the
// only one afterwards. The result is the directory of the previous data, or "" if there was none.
// With several masters, no other member may run, unless force is set.
func (e Etcd) Restore(ctx context.Context, snapshot string, skipHash, force bool) (previous string, err error) {
	restore := kube.EtcdRestore{Dir: e.Dir, Snapshot: snapshot, SkipHash: skipHash, Name: kube.SingleMember, PeerURL: e.PeerURL}
	if e.Several {
		restore.Name = e.Name
		if err := e.checkOthersStopped(ctx, force); err != nil {
			return "", err
		}
	}
	_, statErr := os.Stat(filepath.Join(restore.Dir, "member"))
	if err := restore.Run(); err != nil || statErr != nil {
		return "", err
	}
	return restore.Former(), nil
}

// checkOthersStopped returns an error if another member runs.
func (e Etcd) checkOthersStopped(ctx context.Context, force bool) error {
	members, err := kube.StoredMembers(e.Dir)
	if err != nil || force {
		return nil // the data is missing or damaged
	}
	if alive := e.alive(ctx, members); len(alive) > 0 {
		return fmt.Errorf("etcd still runs on %s: stop Slipway there, because this master starts a new cluster; the others join it again after `slipway down --purge`", strings.Join(alive, ", "))
	}
	return nil
}

// alive returns the names of the other members that respond.
func (e Etcd) alive(ctx context.Context, members []etcdmember.Member) (names []string) {
	for _, m := range members {
		if m.Name == e.Name {
			continue
		}
		if _, err := e.members(ctx, m.PeerURL); err == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// recordedMembers returns the members that this host's member has recorded. The member can be
// running without a quorum.
func (e Etcd) recordedMembers(ctx context.Context) ([]etcdmember.Member, error) {
	members, err := e.members(ctx, e.PeerURL)
	if err == nil {
		return members, nil
	}
	members, storedErr := kube.StoredMembers(e.Dir)
	if storedErr != nil {
		return nil, errors.Join(storedErr, err)
	}
	return members, nil
}

// members requests the members from the member at a URL.
func (e Etcd) members(ctx context.Context, url string) ([]etcdmember.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return kube.PeerMembers(ctx, e.Client, url)
}
