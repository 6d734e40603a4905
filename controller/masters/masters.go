// Package masters manages the etcd members in a cluster with several masters. It promotes learners
// that have caught up to voting members, and removes learners that make no progress.
//
// A joining master starts as a learner. It has all data, and losing it does not interrupt the
// cluster. The number of voters stays odd, because two voters fail more often than one. The second
// master therefore stays a standby learner until a third master has caught up.
package masters

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

const (
	// interval is the interval between two checks of the members.
	interval = 2 * time.Second
	// requestTimeout is the timeout for a request to a member.
	requestTimeout = 3 * time.Second
	// startLimit is how long a new member may take to start. stallLimit is how long a learner may
	// go without receiving data. A learner that exceeds either limit is removed.
	startLimit, stallLimit = time.Minute, 5 * time.Minute
	// readyShare is the fraction of the leader's log that a learner must have before etcd promotes
	// it.
	readyShare = 0.9
)

// Members manages the etcd members.
type Members interface {
	List(context.Context) ([]etcdmember.Member, error)
	Promote(ctx context.Context, id uint64) error
	Remove(ctx context.Context, id uint64) error
	Status(ctx context.Context, url string) (etcdmember.Status, error)
}

// Membership is the component that promotes and removes members. Only one master runs it.
type Membership struct {
	Members Members

	progress map[uint64]progress
}

// progress is a learner's progress so far.
type progress struct {
	index uint64
	// since is the time when index last changed.
	since time.Time
	// complete means that the learner has caught up at least once. Such a learner is not removed,
	// because a master can be down for a while.
	complete bool
}

// learner is a learner together with its progress.
type learner struct {
	etcdmember.Member
	progress
	ready bool // it has caught up and responds
}

// Name returns the component's name.
func (*Membership) Name() string { return "etcd-members" }

// Run promotes and removes members until ctx is done.
func (m *Membership) Run(ctx context.Context, ready func()) error {
	ready()
	m.progress = map[uint64]progress{}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := m.reconcile(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot check the etcd members", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// reconcile checks the members once, and promotes and removes learners.
func (m *Membership) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*requestTimeout)
	defer cancel()
	members, err := m.Members.List(ctx)
	if err != nil {
		return err
	}
	voters, learners := 0, 0
	for _, member := range members {
		if member.Learner {
			learners++
			continue
		}
		voters++
	}
	if learners == 0 {
		return nil
	}
	states := m.observe(ctx, members, time.Now())
	var errs []error
	for _, l := range expelled(states, time.Now()) {
		slog.Warn("expelled an etcd member that makes no progress", "address", l.PeerURL, "node", l.Name)
		errs = append(errs, m.Members.Remove(ctx, l.ID))
	}
	for _, l := range promoted(states, voters) {
		switch err := m.Members.Promote(ctx, l.ID); {
		case errors.Is(err, etcdmember.ErrNotReady):
			return errors.Join(errs...)
		case err != nil:
			return errors.Join(append(errs, err)...)
		}
		slog.Info("promoted a master to a voting etcd member", "node", l.Name)
	}
	return errors.Join(errs...)
}

// observe requests the members' progress and returns the learners.
func (m *Membership) observe(ctx context.Context, members []etcdmember.Member, now time.Time) []learner {
	indexes := map[uint64]uint64{}
	last := uint64(0)
	for _, member := range members {
		if member.ClientURL == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		status, err := m.Members.Status(ctx, member.ClientURL)
		cancel()
		if err != nil {
			continue // a member that is down makes no progress
		}
		indexes[member.ID] = status.Index
		if !member.Learner {
			last = max(last, status.Index)
		}
	}
	var learners []learner
	next := map[uint64]progress{}
	for _, member := range members {
		if !member.Learner {
			continue
		}
		p, observed := m.progress[member.ID]
		index, responds := indexes[member.ID]
		if !observed || index > p.index {
			p.index, p.since = index, now
		}
		ready := responds && last > 0 && float64(index) >= readyShare*float64(last)
		p.complete = p.complete || ready || !observed && member.Name != "" && !responds
		next[member.ID] = p
		learners = append(learners, learner{member, p, ready})
	}
	m.progress = next
	return learners
}

// expelled returns the learners that must be removed because they make no progress.
func expelled(learners []learner, now time.Time) []learner {
	return slices.DeleteFunc(slices.Clone(learners), func(l learner) bool {
		limit := stallLimit
		if l.Name == "" {
			limit = startLimit
		}
		return l.complete || now.Sub(l.since) < limit
	})
}

// promoted returns the learners to promote now, so that the number of voters becomes or stays odd.
func promoted(learners []learner, voters int) []learner {
	ready := slices.DeleteFunc(slices.Clone(learners), func(l learner) bool { return !l.ready })
	count := 2
	if voters%2 == 0 {
		count = 1
	}
	if len(ready) < count {
		return nil
	}
	return ready[:count]
}
