package kube

import (
	"errors"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// stateOf returns the state of a voter in a cluster that member 1 leads. The sizes are in MiB.
func stateOf(id uint64, size, inUse int64) etcdmember.State {
	return etcdmember.State{
		Member: etcdmember.Member{ID: id, Name: string(rune('a' + id - 1))},
		Status: etcdmember.Status{Leader: 1, Index: 5000, Size: size << 20, InUse: inUse << 20},
	}
}

// describe formats a maintenance step as text.
func describe(work maintenanceWork, err error) string {
	switch {
	case err != nil:
		return "error"
	case work.defragment != nil:
		return "defragment " + work.defragment.Name
	case work.lead != nil:
		return "lead " + work.lead.Name
	}
	return "nothing"
}

func TestOneFileAtATimeIsDefragmented(t *testing.T) {
	now := time.Now()
	large, small := func(id uint64) etcdmember.State { return stateOf(id, 1000, 300) }, func(id uint64) etcdmember.State { return stateOf(id, 300, 290) }
	down, behind, learner := small(3), small(3), large(2)
	down.Err, behind.Index, learner.Learner = errors.New("down"), 10, true
	deadLearner := learner
	deadLearner.Err = errors.New("down")
	tests := []struct {
		name   string
		states []etcdmember.State
		load   float64
		done   map[uint64]time.Time
		want   string
	}{
		{"nothing is unused", []etcdmember.State{small(1), small(2), small(3)}, 0, nil, "nothing"},
		{"less than half is unused", []etcdmember.State{stateOf(1, 1000, 600)}, 0, nil, "nothing"},
		{"less than the free space is unused", []etcdmember.State{stateOf(1, 200, 20)}, 0, nil, "nothing"},
		{"the only member", []etcdmember.State{large(1)}, 0, nil, "defragment a"},
		{"followers precede the leader", []etcdmember.State{large(1), large(2), large(3)}, 0, nil, "defragment b"},
		{"the last follower", []etcdmember.State{large(1), small(2), large(3)}, 0, nil, "defragment c"},
		{"the leader hands over", []etcdmember.State{large(1), small(2), small(3)}, 0, nil, "lead c"},
		{"a learner cannot lead", []etcdmember.State{large(1), learner}, 0, map[uint64]time.Time{2: now}, "defragment a"},
		{"a learner shrinks", []etcdmember.State{large(1), learner}, 0, nil, "defragment b"},
		{"a dead learner blocks nothing", []etcdmember.State{large(1), deadLearner}, 0, nil, "defragment a"},
		{"a voter is down", []etcdmember.State{small(1), large(2), down}, 0, nil, "error"},
		{"a voter is down, and nothing is unused", []etcdmember.State{small(1), small(2), down}, 0, nil, "nothing"},
		{"a member catches up", []etcdmember.State{small(1), large(2), behind}, 0, nil, "nothing"},
		{"under load", []etcdmember.State{large(1)}, 300, nil, "nothing"},
		{"under load, but urgent", []etcdmember.State{stateOf(1, 5000, 4000)}, 300, nil, "defragment a"},
		{"defragmented a minute ago", []etcdmember.State{large(1)}, 0, map[uint64]time.Time{1: now.Add(-time.Minute)}, "nothing"},
		{"defragmented two hours ago", []etcdmember.State{large(1)}, 0, map[uint64]time.Time{1: now.Add(-2 * time.Hour)}, "defragment a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := maintenance{freeSpace: 256 << 20, quota: fileQuota, load: tt.load, now: now, done: tt.done}
			if got := describe(m.next(tt.states)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFullEtcdIsDefragmentedAfterDeletions(t *testing.T) {
	down := stateOf(3, 0, 0)
	down.Err = errors.New("down")
	tests := []struct {
		name   string
		states []etcdmember.State
		want   string
	}{
		{"objects use the space", []etcdmember.State{stateOf(1, 8192, 7000), stateOf(2, 8192, 7000)}, "error"},
		{"objects were deleted", []etcdmember.State{stateOf(1, 8192, 100), stateOf(2, 8192, 100)}, "defragment b"},
		{"only the leader's file is large", []etcdmember.State{stateOf(1, 8192, 100), stateOf(2, 100, 100)}, "lead b"},
		{"the only member", []etcdmember.State{stateOf(1, 8192, 100)}, "defragment a"},
		{"all are small", []etcdmember.State{stateOf(1, 100, 100), stateOf(2, 100, 100), down}, "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := describe(recovery(fileQuota).next(tt.states)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLoadIsRateOfWrites(t *testing.T) {
	var sample writeSample
	start := time.Now()
	for i, tt := range []struct {
		index uint64
		want  float64
	}{{1000, busyRate}, {1100, 10}, {1100, 0}, {50, busyRate}} {
		if got := sample.next(tt.index, start.Add(time.Duration(i)*10*time.Second)); got != tt.want {
			t.Errorf("after %d writes, the rate is %v, want %v", tt.index, got, tt.want)
		}
	}
}
