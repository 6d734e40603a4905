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

// EtcdMaintenance is the component that keeps the database files of etcd small, and makes a full
// etcd writable again after objects were deleted. It runs on each master. The one whose member
// leads etcd maintains all members, one after the other. It maintains its own member last, after
// another member has become the leader.
type EtcdMaintenance struct {
	// Client manages the members.
	Client etcdmember.Client
	// Member is the name of this host's member, or "" if it is the only one.
	Member string
	// Interval is the time between two checks.
	Interval time.Duration
	// FreeSpace is the minimum unused space, in bytes, of a file that is defragmented.
	FreeSpace int64

	// quota is the size of the file at which etcd rejects writes, by default fileQuota.
	quota int64

	note     func(string)
	noted    string
	previous writeSample
	done     map[uint64]time.Time // the last defragmentation of each member
}

const (
	// defragmentTimeout limits the work on one member.
	defragmentTimeout = 10 * time.Minute
	// maintenanceTimeout limits each other request.
	maintenanceTimeout = 10 * time.Second
	// settleInterval is the longest time between the work on two members.
	settleInterval = 5 * time.Second
)

// Name returns the component's name.
func (*EtcdMaintenance) Name() string { return "etcd-maintenance" }

// Notes sets the function that reports why files cannot be maintained.
func (m *EtcdMaintenance) Notes(note func(string)) { m.note = note }

// Run maintains the members until ctx ends.
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

// report notes an error, and logs it when it changes.
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
		slog.Warn("cannot maintain the files of etcd", "error", err)
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

// limit returns the size in bytes of the file at which etcd rejects writes.
func (m *EtcdMaintenance) limit() int64 { return cmp.Or(m.quota, fileQuota) }

func (m *EtcdMaintenance) full(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	return m.Client.Full(ctx)
}

// recover makes a full etcd writable as soon as its objects leave enough space.
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

// refresh makes all members count the space that is in use. A member counts the space that a
// compaction frees with its next write, and a full etcd permits this one: it stores the same
// address again.
func (m *EtcdMaintenance) refresh(ctx context.Context, self etcdmember.State) error {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	return m.Client.Update(ctx, self.ID, self.PeerURL)
}

// do defragments a member, or moves the leadership of self to another one.
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
	slog.Info("defragmented a member of etcd", "member", member.Name, "before", member.Size, "after", after.Size, "duration", time.Since(start))
	return nil
}
