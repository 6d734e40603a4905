package kube

import (
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

const (
	// busyRate is the minimum number of writes per second at which etcd counts as busy.
	busyRate = 200
	// maxLag is the number of writes that a member can be behind the others.
	maxLag = 1000
	// defragmentPause is the shortest time between two defragmentations of a member, unless its file
	// is urgent.
	defragmentPause = time.Hour
)

// writeSample is the number of writes that etcd had applied at a time.
type writeSample struct {
	index uint64
	at    time.Time
}

// next replaces the sample, and returns the writes per second since the previous one. Without a
// previous one, it returns busyRate.
func (s *writeSample) next(index uint64, now time.Time) float64 {
	previous := *s
	*s = writeSample{index, now}
	elapsed := now.Sub(previous.at).Seconds()
	if previous.at.IsZero() || elapsed <= 0 || index < previous.index {
		return busyRate
	}
	return float64(index-previous.index) / elapsed
}

// maintenanceWork is the next work on the members: at most one field is set.
type maintenanceWork struct {
	// defragment is the member whose file shrinks.
	defragment *etcdmember.State
	// lead is the member that becomes the leader, because only the file of the current leader remains.
	lead *etcdmember.State
}

// maintenance selects the file to defragment.
type maintenance struct {
	// freeSpace is the minimum unused space, in bytes, of a file that is defragmented. quota is the
	// size at which etcd rejects writes.
	freeSpace, quota int64
	// load is the number of writes per second.
	load float64
	now  time.Time
	// done is the last defragmentation of each member.
	done map[uint64]time.Time
}

// urgent reports whether a file is so large that the work no longer waits for less load.
func (m maintenance) urgent(s etcdmember.State) bool {
	return s.Size >= m.quota/2 && s.Size-s.InUse >= m.freeSpace
}

// worth reports whether the file of a member contains enough unused space: freeSpace, and half of
// the file unless it is urgent.
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

// next returns the next work. The error names the member that must respond first: with all of its
// voters, etcd keeps its majority while one of them is blocked.
func (m maintenance) next(states []etcdmember.State) (maintenanceWork, error) {
	work := nextWork(states, m.worth)
	if work == (maintenanceWork{}) {
		return work, nil
	}
	last := etcdmember.LastIndex(states)
	for _, s := range states {
		if problem := s.Problem(); problem != "" && !s.Learner {
			return maintenanceWork{}, fmt.Errorf("the files of etcd contain unused space, but its member %q is not healthy: %s", s.Name, problem)
		}
		if s.Err == nil && last-s.Index > maxLag {
			return maintenanceWork{}, nil // it is catching up
		}
	}
	return work, nil
}

// recovery selects the file to defragment while etcd rejects writes. The number is the size in
// bytes at which etcd rejects them.
type recovery int64

// next returns the next work, or none if all files are small enough. The error means that the
// objects take too much space.
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

// nextWork returns the work on the first member that needs it; on the leader after all others. A
// leader first moves the leadership to another member.
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
