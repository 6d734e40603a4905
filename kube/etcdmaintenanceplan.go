package kube

import (
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

const (
	// busyRate is the number of writes per second at which etcd is considered busy.
	busyRate = 200
	// maxLag is the maximum number of writes by which a member can lag behind the other members.
	maxLag = 1000
	// defragmentPause is the minimum time between two defragmentations of the same member, unless
	// its file is urgent.
	defragmentPause = time.Hour
)

// writeSample is the number of writes that etcd had applied at a given time.
type writeSample struct {
	index uint64
	at    time.Time
}

// next replaces the sample, and returns the number of writes per second since the previous sample.
// Without a previous sample, it returns busyRate.
func (s *writeSample) next(index uint64, now time.Time) float64 {
	previous := *s
	*s = writeSample{index, now}
	elapsed := now.Sub(previous.at).Seconds()
	if previous.at.IsZero() || elapsed <= 0 || index < previous.index {
		return busyRate
	}
	return float64(index-previous.index) / elapsed
}

// maintenanceWork is the next maintenance step. At most one field is set.
type maintenanceWork struct {
	// defragment is the member whose file must be defragmented.
	defragment *etcdmember.State
	// lead is the member that must become the leader, because only the current leader's file still
	// needs defragmentation.
	lead *etcdmember.State
}

// maintenance selects the member whose file is defragmented next.
type maintenance struct {
	// freeSpace is the minimum unused space, in bytes, that a file must contain to be defragmented.
	// quota is the file size in bytes at which etcd rejects writes.
	freeSpace, quota int64
	// load is the number of writes per second.
	load float64
	now  time.Time
	// done maps each member to the time of its last defragmentation.
	done map[uint64]time.Time
}

// urgent reports whether a file is so large that its defragmentation does not wait for lower load.
func (m maintenance) urgent(s etcdmember.State) bool {
	return s.Size >= m.quota/2 && s.Size-s.InUse >= m.freeSpace
}

// worth reports whether a member's file contains enough unused space: at least freeSpace and,
// unless the file is urgent, at least half of the file.
func (m maintenance) worth(s etcdmember.State) bool {
	free := s.Size - s.InUse
	if s.Err != nil || free < m.freeSpace {
		return false
	}
	if m.urgent(s) {
		return true
	}
	return 2*free >= s.Size && m.load < busyRate && m.now.Sub(m.done[s.ID]) >= defragmentPause
}

// next returns the next maintenance step. Maintenance waits until all voters are healthy, because
// etcd would otherwise lose its majority while one voter is blocked. The error contains the name of
// the voter that is not healthy.
func (m maintenance) next(states []etcdmember.State) (maintenanceWork, error) {
	work := nextWork(states, m.worth)
	if work == (maintenanceWork{}) {
		return work, nil
	}
	last := etcdmember.LastIndex(states)
	for _, s := range states {
		if problem := s.Problem(); problem != "" && !s.Learner {
			return maintenanceWork{}, fmt.Errorf("the unused space in the etcd files is not released, because etcd member %q is not healthy: %s", s.Name, problem)
		}
		if s.Err == nil && last-s.Index > maxLag {
			return maintenanceWork{}, nil // the member is catching up
		}
	}
	return work, nil
}

// recovery selects the file to defragment while etcd rejects writes. Its value is the file size in
// bytes at which etcd rejects writes.
type recovery int64

// next returns the next maintenance step, or no step if all files are small enough. An error means
// that the objects occupy too much space.
func (r recovery) next(states []etcdmember.State) (maintenanceWork, error) {
	enough := int64(r) / 4 * 3
	for _, s := range states {
		if s.Err == nil && s.InUse > enough {
			return maintenanceWork{}, fmt.Errorf(
				"etcd rejects writes, because its objects use %d of %d MiB; delete objects, and it accepts writes again within minutes", s.InUse>>20, int64(r)>>20)
		}
	}
	return nextWork(states, func(s etcdmember.State) bool { return s.Err == nil && s.Size > enough }), nil
}

// nextWork returns the step for the first member that needs maintenance. The leader is maintained
// after all other members, and first transfers the leadership to another member.
func nextWork(states []etcdmember.State, needed func(etcdmember.State) bool) maintenanceWork {
	var leader, successor *etcdmember.State
	for i := range states {
		s := &states[i]
		switch {
		case s.Leader == s.ID && s.Err == nil:
			leader = s
		case needed(*s):
			return maintenanceWork{defragment: s}
		case s.Err == nil && !s.Learner:
			successor = s
		}
	}
	switch {
	case leader == nil || !needed(*leader):
		return maintenanceWork{}
	case successor != nil:
		return maintenanceWork{lead: successor}
	}
	return maintenanceWork{defragment: leader}
}
