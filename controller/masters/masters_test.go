package masters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// fakeMembers is a list of members whose log indexes a test sets. A member without an index does
// not respond.
type fakeMembers struct {
	list    []etcdmember.Member
	index   map[string]uint64
	changes []string
}

func (f *fakeMembers) List(context.Context) ([]etcdmember.Member, error) {
	return slices.Clone(f.list), nil
}

func (f *fakeMembers) Promote(_ context.Context, id uint64) error {
	f.changes = append(f.changes, fmt.Sprintf("promote %d", id))
	for i := range f.list {
		if f.list[i].ID == id {
			f.list[i].Learner = false
		}
	}
	return nil
}

func (f *fakeMembers) Remove(_ context.Context, id uint64) error {
	f.changes = append(f.changes, fmt.Sprintf("remove %d", id))
	f.list = slices.DeleteFunc(f.list, func(m etcdmember.Member) bool { return m.ID == id })
	return nil
}

func (f *fakeMembers) Status(_ context.Context, url string) (etcdmember.Status, error) {
	index, responds := f.index[url]
	if !responds {
		return etcdmember.Status{}, errors.New("the member is down")
	}
	return etcdmember.Status{Index: index}, nil
}

func voter(id uint64) etcdmember.Member {
	return etcdmember.Member{ID: id, Name: fmt.Sprint(id), ClientURL: fmt.Sprint(id)}
}

func newLearner(id uint64) etcdmember.Member {
	m := voter(id)
	m.Learner = true
	return m
}

func reconcileOnce(t *testing.T, m *Membership) {
	t.Helper()
	if m.progress == nil {
		m.progress = map[uint64]progress{}
	}
	if err := m.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNumberOfVotersStaysOdd(t *testing.T) {
	off := etcdmember.Member{ID: 9, Learner: true, PeerURL: "9"} // this member has never started
	for name, tt := range map[string]struct {
		list  []etcdmember.Member
		index map[string]uint64
		want  []string
	}{
		"second master is on standby":          {[]etcdmember.Member{voter(1), newLearner(2)}, map[string]uint64{"1": 100, "2": 100}, nil},
		"third master has caught up":           {[]etcdmember.Member{voter(1), newLearner(2), newLearner(3)}, map[string]uint64{"1": 100, "2": 95, "3": 99}, []string{"promote 2", "promote 3"}},
		"third master has not caught up":       {[]etcdmember.Member{voter(1), newLearner(2), newLearner(3)}, map[string]uint64{"1": 100, "2": 100, "3": 10}, nil},
		"third master is down":                 {[]etcdmember.Member{voter(1), newLearner(2), newLearner(3)}, map[string]uint64{"1": 100, "2": 100}, nil},
		"failed learner does not block others": {[]etcdmember.Member{off, voter(1), newLearner(2), newLearner(3)}, map[string]uint64{"1": 100, "2": 100, "3": 100}, []string{"promote 2", "promote 3"}},
		"even number of voters":                {[]etcdmember.Member{voter(1), voter(2), newLearner(3)}, map[string]uint64{"1": 100, "2": 100, "3": 100}, []string{"promote 3"}},
		"fourth master is on standby":          {[]etcdmember.Member{voter(1), voter(2), voter(3), newLearner(4)}, map[string]uint64{"1": 100, "2": 100, "3": 100, "4": 100}, nil},
		"leader does not respond":              {[]etcdmember.Member{voter(1), newLearner(2), newLearner(3)}, map[string]uint64{"2": 100, "3": 100}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			members := &fakeMembers{list: tt.list, index: tt.index}
			reconcileOnce(t, &Membership{Members: members})
			if !slices.Equal(members.changes, tt.want) {
				t.Errorf("got %q, want %q", members.changes, tt.want)
			}
		})
	}
}

func TestLearnersWithoutProgressAreExpelled(t *testing.T) {
	now := time.Now()
	unstarted := etcdmember.Member{ID: 1, PeerURL: "1"}
	for name, tt := range map[string]struct {
		learner learner
		want    bool
	}{
		"never started":             {learner{Member: unstarted, progress: progress{since: now.Add(-startLimit)}}, true},
		"has not started":           {learner{Member: unstarted, progress: progress{since: now.Add(-startLimit / 2)}}, false},
		"receives nothing":          {learner{Member: newLearner(1), progress: progress{since: now.Add(-stallLimit)}}, true},
		"is slow":                   {learner{Member: newLearner(1), progress: progress{since: now.Add(-stallLimit / 2)}}, false},
		"has caught up and is down": {learner{Member: newLearner(1), progress: progress{since: now.Add(-100 * stallLimit), complete: true}}, false},
		"has caught up and waiting": {learner{Member: newLearner(1), progress: progress{since: now.Add(-100 * stallLimit), complete: true}, ready: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(expelled([]learner{tt.learner}, now)) == 1; got != tt.want {
				t.Errorf("expelled: %v", got)
			}
		})
	}
}

func TestStandbyThatIsDownIsNotExpelledByNewLeader(t *testing.T) {
	members := &fakeMembers{list: []etcdmember.Member{voter(1), newLearner(2)}, index: map[string]uint64{"1": 100}}
	m := &Membership{Members: members}
	reconcileOnce(t, m)
	if p := m.progress[2]; !p.complete {
		t.Error("a master that is down would be expelled")
	}
}
