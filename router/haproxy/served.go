package haproxy

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
)

// served is what a HAProxy that runs has read, and what it was told since.
type served struct {
	control runtime
	dir     string
	config  *Config // as far as it is served
	files   map[string][]byte
	tables  map[string][]Entry                 // with the names that backends have here
	spares  map[string][]string                // backends that are free, by shape
	places  map[string]string                  // the spare backends that others are in, by the names of these
	publish *atomic.Pointer[map[string]string] // where places are told
	asked   map[string]string                  // the shapes of spare backends that were asked for, by the names of who did
	parked  map[string]Server                  // servers out of use that could not be deleted yet, by backend and name
	since   time.Time                          // when backends were first others than those that were read
	damaged map[string]bool                    // what a command about was refused, so that it is not known: backends, entries of tables, files
	broken  bool                               // it did not answer: nothing is known
}

// settled says that the backends are those that HAProxy has read.
func (s *served) settled() bool { return s.since.IsZero() && s.known() }

// known says that HAProxy has all that it was told.
func (s *served) known() bool { return len(s.damaged) == 0 && !s.broken }

// scarce says that half of the spare backends of a shape are in use.
func (s *served) scarce() bool {
	for shape, asked := range s.demand() {
		if asked >= len(s.spares[shape]) {
			return true
		}
	}
	return false
}

// demand counts the spare backends that were asked for, by shape.
func (s *served) demand() map[string]int {
	count := map[string]int{}
	for _, shape := range s.asked {
		count[shape]++
	}
	return count
}

// change tells HAProxy what it can be told of a configuration. all says that it serves all of it. fixed is one that cannot be told anything.
func (s *served) change(config *Config, fixed bool) (all bool, err error) {
	if s.config == config {
		return s.known(), nil
	}
	if fixed || config.whole != "" || s.config.whole != "" {
		all = config.Text() == s.config.Text() && maps.EqualFunc(s.files, config.files(), bytes.Equal)
		return all, nil
	}
	if s.broken {
		return false, nil
	}
	next := s.plan(config)
	refused, err := s.tell(next.steps)
	if err != nil {
		s.broken = true
		return false, err
	}
	s.tables, s.parked = next.tables, s.control.remove(next.parked)
	s.config = next.config
	if next.moved {
		places := maps.Clone(s.places)
		s.publish.Store(&places)
	}
	if next.all && refused == nil {
		s.config = config
	}
	return next.all && s.known(), refused
}

// tell tells HAProxy the steps of a plan. What it refuses is damaged, and the rest counts. err says that nothing is known.
func (s *served) tell(steps []step) (refused, err error) {
	var commands []string
	var owners []*step
	for i := range steps {
		commands = append(commands, steps[i].commands...)
		for range steps[i].commands {
			owners = append(owners, &steps[i])
		}
	}
	answers, err := s.control.tell(commands)
	if err != nil {
		return nil, err
	}
	var undo []string
	for at, said := range answers {
		owner := owners[at]
		s.damaged[owner.of] = true
		if owner.undo != "" {
			undo, owner.undo = append(undo, owner.undo), ""
		}
		refused = fmt.Errorf("change %q: HAProxy says %q", owner.of, said)
	}
	if _, err := s.control.tell(undo); err != nil {
		return nil, err
	}
	return refused, nil
}

func sameList(a, b []Entry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

func sameTables(a, b map[string][]Entry) bool { return maps.EqualFunc(a, b, sameList) }

// sameFiles compares what many configurations have in common.
func sameFiles(a, b map[string][]byte) bool {
	return sameMap(a, b) || maps.EqualFunc(a, b, bytes.Equal)
}

func sameMap(a, b map[string][]byte) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
