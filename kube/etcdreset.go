package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// openTimeout is the maximum time to wait for the lock on a database file.
const openTimeout = time.Second

// errNoVote means that a reset is impossible: a learner's data can lag behind, and etcd does not
// accept a cluster that consists only of learners.
var errNoVote = errors.New("this master has no vote in etcd; reset a master with a vote, or restore a snapshot with `slipway etcd snapshot restore`")

// prepareReset checks that a member can continue alone, and changes its settings. When the member
// starts, etcd removes all other members and discards writes that no majority has committed. The
// removed members stop when they contact this member.
func (e *Etcd) prepareReset(c *embed.Config) error {
	members, err := StoredMembers(e.Dir)
	if err != nil {
		return fmt.Errorf("reset etcd: %w", err)
	}
	if err := CheckReset(members, e.Peers.Name); err != nil {
		return fmt.Errorf("reset etcd: %w", err)
	}
	c.ForceNewCluster = true
	return nil
}

// finishReset reports that a reset has been completed.
func (e *Etcd) finishReset() error {
	if !e.Peers.Reset || e.Peers.ResetDone == nil {
		return nil
	}
	return e.Peers.ResetDone()
}

// CheckReset returns an error if the member with the given name cannot continue alone.
func CheckReset(members []etcdmember.Member, name string) error {
	i := slices.IndexFunc(members, func(m etcdmember.Member) bool { return m.Name == name })
	if i < 0 {
		return fmt.Errorf("the etcd data of this host contains no member %q", name)
	}
	if members[i].Learner {
		return errNoVote
	}
	return nil
}

// StoredMembers returns the member list in the data directory of a member that is not running.
func StoredMembers(dir string) ([]etcdmember.Member, error) {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("read etcd members: %w", err)
	}
	database, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, fmt.Errorf("read members of etcd from %q: %w", path, err)
	}
	defer database.Close()
	var list []membership.Member
	err = database.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("members"))
		if bucket == nil {
			return errors.New("the database has no members")
		}
		return bucket.ForEach(func(_, value []byte) error {
			var member membership.Member
			if err := json.Unmarshal(value, &member); err != nil {
				return err
			}
			list = append(list, member)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read members of etcd from %q: %w", path, err)
	}
	return plainMembers(list), nil
}

// plainMembers converts members from the etcd server's type.
func plainMembers(list []membership.Member) (members []etcdmember.Member) {
	for _, m := range list {
		member := etcdmember.Member{ID: uint64(m.ID), Name: m.Name, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			member.PeerURL = m.PeerURLs[0]
		}
		if len(m.ClientURLs) > 0 {
			member.ClientURL = m.ClientURLs[0]
		}
		members = append(members, member)
	}
	return members
}
