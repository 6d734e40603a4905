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

// served is the state of a running HAProxy process: the configuration that the process has read,
// and the changes since then.
type served struct {
	control runtime
	dir     string
	config  *Config // the served part of the configuration
	files   map[string][]byte
	tables  map[string][]Entry                 // uses the backend names of this process
	spares  map[string][]string                // free backends by shape
	places  map[string]string                  // maps a backend to the spare backend that serves it
	publish *atomic.Pointer[map[string]string] // receives each new value of places
	// requested maps each backend that needs a spare backend to the required shape.
	requested map[string]string
	// parked contains unused servers that could not be deleted yet, keyed by backend and name.
	parked map[string]Server
	// since is the time when the backends first differed from HAProxy's configuration file.
	since time.Time
	// damaged contains backends, entries and files for which a command was rejected. Their state is
	// unknown.
	damaged map[string]bool
	broken  bool // true if HAProxy did not respond, so its state is unknown
}

// settled reports whether HAProxy's backends are the same as in its configuration file.
func (s *served) settled() bool { return s.since.IsZero() && s.known() }

// known reports whether HAProxy has accepted all commands.
func (s *served) known() bool { return len(s.damaged) == 0 && !s.broken }

// scarce reports whether at least half of the spare backends of any shape are in use.
func (s *served) scarce() bool {
	for shape, requests := range s.demand() {
		if requests >= len(s.spares[shape]) {
			return true
		}
	}
	return false
}

// demand counts the requested spare backends by shape.
func (s *served) demand() map[string]int {
	count := map[string]int{}
	for _, shape := range s.requested {
		count[shape]++
	}
	return count
}

// change applies the supported changes to HAProxy. all reports whether HAProxy then serves all of
// config. fixed means that HAProxy does not accept commands.
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
	rejection, err := s.apply(next.steps)
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
	if next.all && rejection == nil {
		s.config = config
	}
	return next.all && s.known(), rejection
}

// apply sends the steps of a plan. rejection reports a step that HAProxy rejected. The other steps
// are applied. If err is not nil, HAProxy's state is unknown.
func (s *served) apply(steps []step) (rejection, err error) {
	var commands []string
	var owners []*step
	for i := range steps {
		commands = append(commands, steps[i].commands...)
		for range steps[i].commands {
			owners = append(owners, &steps[i])
		}
	}
	responses, err := s.control.sendAll(commands)
	if err != nil {
		return nil, err
	}
	var undo []string
	for at, response := range responses {
		owner := owners[at]
		s.damaged[owner.of] = true
		if owner.undo != "" {
			undo, owner.undo = append(undo, owner.undo), ""
		}
		rejection = fmt.Errorf("change %q: HAProxy responds with %q", owner.of, response)
	}
	if _, err := s.control.sendAll(undo); err != nil {
		return nil, err
	}
	return rejection, nil
}

func sameList(a, b []Entry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

func sameTables(a, b map[string][]Entry) bool { return maps.EqualFunc(a, b, sameList) }

// sameFiles compares two sets of files. It first checks whether both are the same map.
func sameFiles(a, b map[string][]byte) bool {
	return sameMap(a, b) || maps.EqualFunc(a, b, bytes.Equal)
}

func sameMap(a, b map[string][]byte) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
