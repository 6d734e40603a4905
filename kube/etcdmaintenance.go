package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// EtcdMaintenance is the component that keeps etcd's database files small, and makes a full etcd
// writable again after objects have been deleted. It runs on each master. The instance whose member
// is etcd's leader maintains all members, one after the other. It maintains its own member last,
// after another member has become the leader.
type EtcdMaintenance struct {
	// Client manages the members.
	Client etcdmember.Client
	// Member is the name of this host's member, or "" if it is the only member.
	Member string
	// Interval is the time between two checks of the members.
	Interval time.Duration
	// FreeSpace is the minimum unused space, in bytes, that a file must contain to be defragmented.
	FreeSpace int64

	// quota is the file size in bytes at which etcd rejects writes, by default fileQuota.
	quota int64

	note     func(string)
	noted    string
	previous writeSample
	done     map[uint64]time.Time // time of each member's last defragmentation
}

const (
	// defragmentTimeout is the maximum time for defragmenting one member.
	defragmentTimeout = 10 * time.Minute
	// maintenanceTimeout is the timeout for any request other than a defragmentation.
	maintenanceTimeout = 10 * time.Second
	// settleInterval is the maximum time between the maintenance of two members.
	settleInterval = 5 * time.Second
)

// Name returns the component's name.
func (*EtcdMaintenance) Name() string { return "etcd-maintenance" }

// Notes sets the function that the component calls with the reason why it cannot maintain files.
func (m *EtcdMaintenance) Notes(note func(string)) { m.note = note }

// Run maintains the members until ctx is done.
func (m *EtcdMaintenance) Run(ctx context.Context, ready func()) error {
	ready()
	m.done = map[uint64]time.Time{}
	timer := time.NewTimer(m.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		acted, err := m.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.report(err)
		next := m.Interval
		if acted {
			next = min(next, settleInterval)
		}
		timer.Reset(next)
	}
}

// report passes an error to note, and logs the error when it changes.
func (m *EtcdMaintenance) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == m.noted {
		return
	}
	m.noted = text
	m.note(text)
	if err != nil {
		slog.Warn("cannot maintain the etcd files", "error", err)
	}
}

// step maintains at most one member. acted means that the next step is due soon.
func (m *EtcdMaintenance) step(ctx context.Context) (acted bool, err error) {
	states, err := m.Client.States(ctx)
	if err != nil {
		return false, err
	}
	self, ok := m.self(states)
	if !ok || self.Err != nil {
		return false, self.Err // a host that was just removed has no member
	}
	now := time.Now()
	load := m.previous.next(self.Index, now)
	if self.Leader != self.ID {
		return false, nil
	}
	full, err := m.full(ctx)
	if err != nil {
		return false, err
	}
	if full {
		return m.recover(ctx)
	}
	plan := maintenance{freeSpace: m.FreeSpace, quota: m.limit(), load: load, now: now, done: m.done}
	work, err := plan.next(states)
	return m.do(ctx, self, work, err)
}

// self returns the state of this host's member.
func (m *EtcdMaintenance) self(states []etcdmember.State) (etcdmember.State, bool) {
	for _, state := range states {
		if m.Member == "" || state.Name == m.Member {
			return state, true
		}
	}
	return etcdmember.State{}, false
}

// limit returns the file size in bytes at which etcd rejects writes.
func (m *EtcdMaintenance) limit() int64 { return cmp.Or(m.quota, fileQuota) }

func (m *EtcdMaintenance) full(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	return m.Client.Full(ctx)
}

// recover makes a full etcd writable again once enough objects have been deleted.
func (m *EtcdMaintenance) recover(ctx context.Context) (acted bool, err error) {
	compacting, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	if err := m.Client.Compact(compacting); err != nil {
		return false, err
	}
	states, err := m.Client.States(ctx)
	if err != nil {
		return false, err
	}
	self, ok := m.self(states)
	if !ok || self.Err != nil {
		return false, self.Err
	}
	work, err := recovery(m.limit()).next(states)
	if err != nil {
		return false, errors.Join(err, m.refresh(ctx, self))
	}
	if work != (maintenanceWork{}) {
		return m.do(ctx, self, work, nil)
	}
	disarming, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	if err := m.Client.Disarm(disarming); err != nil {
		return false, err
	}
	slog.Info("etcd accepts writes again")
	return true, nil
}

// refresh makes all members update their records of the size in use. After a compaction, a member
// updates its record only on its next write. Therefore, refresh stores a member's address again.
// Even a full etcd permits this write.
func (m *EtcdMaintenance) refresh(ctx context.Context, self etcdmember.State) error {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	return m.Client.Update(ctx, self.ID, self.PeerURL)
}

// do defragments a member, or moves the leadership from self to another member.
func (m *EtcdMaintenance) do(ctx context.Context, self etcdmember.State, work maintenanceWork, err error) (acted bool, _ error) {
	switch {
	case err != nil:
		return false, err
	case work.defragment != nil:
		return true, m.defragment(ctx, *work.defragment)
	case work.lead != nil:
		ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
		defer cancel()
		if err := m.Client.MoveLeader(ctx, self.ClientURL, work.lead.ID); err != nil {
			return false, err
		}
		slog.Info("another member leads etcd, and defragments this host's member", "leader", work.lead.Name)
		return true, nil
	}
	return false, nil
}

func (m *EtcdMaintenance) defragment(ctx context.Context, member etcdmember.State) error {
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	start := time.Now()
	m.done[member.ID] = start
	if err := m.Client.Defragment(ctx, member.ClientURL); err != nil {
		return err
	}
	after, err := m.Client.Status(ctx, member.ClientURL)
	if err != nil {
		return fmt.Errorf("check the defragmented member %q: %w", member.Name, err)
	}
	slog.Info("defragmented an etcd member", "member", member.Name, "before", member.Size, "after", after.Size, "duration", time.Since(start))
	return nil
}
