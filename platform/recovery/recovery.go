// Package recovery restarts etcd with a single member, either with the member's own data after the
// other masters have been lost, or with a snapshot.
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

// peerTimeout is the timeout for a request to an etcd member that is probably lost.
const peerTimeout = 3 * time.Second

// Etcd is this host's etcd member.
type Etcd struct {
	// Client contains the member's credentials and socket.
	Client etcdmember.Client
	// Dir is the member's data directory.
	Dir string
	// Name and PeerURL identify the member.
	Name, PeerURL string
	// Several means that the host is one of several masters.
	Several bool
}

// Lost returns the other members after checking that this member can continue without them: this
// member has a vote, there is no leader, and no other member responds. If force is set, Lost skips
// the last check.
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

// Restore replaces etcd's data with a snapshot. The member must not be running. It is the only
// member afterwards. Restore returns the directory that contains the previous data, or "" if there
// was none. In a cluster with several masters, no other member is allowed to be running unless
// force is set.
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

// checkOthersStopped returns an error if another member is running.
func (e Etcd) checkOthersStopped(ctx context.Context, force bool) error {
	members, err := kube.StoredMembers(e.Dir)
	if err != nil || force {
		return nil // the data is missing or damaged, or force is set
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

// recordedMembers returns the list of members that this host's member has stored. The member might
// be running without a quorum.
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

// members requests the list of members from the member at a URL.
func (e Etcd) members(ctx context.Context, url string) ([]etcdmember.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return kube.PeerMembers(ctx, e.Client, url)
}
