package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fault is one step in a schedule: a host failure that ends after some time.
type fault struct {
	host, kind string
	lasts      time.Duration
	// second is a host whose control plane is killed during the fault, or "".
	second string
	// clock is a host whose clock is off by shift during the fault, or "".
	clock string
	shift time.Duration
}

func (f fault) String() string {
	text := fmt.Sprintf("%s on %s for %s", f.kind, f.host, f.lasts)
	if f.second != "" {
		text += ", the control plane of " + f.second + " is killed"
	}
	if f.clock != "" {
		text += fmt.Sprintf(", the clock of %s differs by %s", f.clock, f.shift)
	}
	return text
}

const (
	// shortest and longest are the limits on a fault's duration. The leader election's lease
	// duration is between these limits, so that some faults outlast a lease.
	shortest, longest = 2 * time.Second, 20 * time.Second
	// At most one in secondShare faults also kills the control plane on a second host.
	secondShare = 3
	// One in clockShare faults also shifts a host's clock.
	clockShare = 2
)

// schedule selects faults at random. The same seed always results in the same faults.
type schedule struct {
	random, clocks *rand.Rand
	hosts          []string
	kinds          []string
	// deck contains the kinds that remain to be drawn before a kind occurs again.
	deck []string
	// disk is the host whose disk can be filled.
	disk string
}

func newSchedule(seed uint64, hosts, kinds []string, disk string) *schedule {
	return &schedule{random: rand.New(rand.NewPCG(seed, 0)), clocks: rand.New(rand.NewPCG(seed, 1)), hosts: hosts, kinds: kinds, disk: disk}
}

// next returns the next fault.
func (s *schedule) next() fault {
	f := fault{
		host: s.hosts[s.random.IntN(len(s.hosts))], kind: s.nextKind(),
		lasts: shortest + time.Duration(s.random.Int64N(int64(longest-shortest))).Round(time.Second/10),
	}
	other := s.hosts[s.random.IntN(len(s.hosts))]
	if s.random.IntN(secondShare) == 0 && other != f.host {
		f.second = other
	}
	if f.kind == fullDisk {
		f.host = s.disk
		if f.second == s.disk {
			f.second = ""
		}
	}
	if s.clocks.IntN(clockShare) == 0 {
		f.clock, f.shift = s.hosts[s.clocks.IntN(len(s.hosts))], clockShift
		if s.clocks.IntN(2) == 0 {
			f.shift = -clockShift
		}
	}
	return f
}

// nextKind draws a kind from the deck. If the deck is empty, it first shuffles all kinds.
func (s *schedule) nextKind() (kind string) {
	if len(s.deck) == 0 {
		s.deck = slices.Clone(s.kinds)
		s.random.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	}
	kind, s.deck = s.deck[0], s.deck[1:]
	return kind
}

func TestSeedDeterminesSchedule(t *testing.T) {
	list := func(seed uint64) (faults []fault) {
		s := newSchedule(seed, []string{"a", "b", "c"}, kinds(), "c")
		for range 100 {
			faults = append(faults, s.next())
		}
		return faults
	}
	first := list(7)
	if !slices.Equal(first, list(7)) || slices.Equal(first, list(8)) {
		t.Error("the seed does not determine the faults")
	}
	for _, f := range first {
		if f.second == f.host || f.kind == fullDisk && f.host != "c" || f.lasts < shortest || f.lasts > longest {
			t.Errorf("%s", f)
		}
	}
	for _, shift := range []time.Duration{0, clockShift, -clockShift} {
		if !slices.ContainsFunc(first, func(f fault) bool { return f.shift == shift }) {
			t.Errorf("the schedule contains no clock that differs by %s", shift)
		}
	}
	for _, kind := range kinds() {
		if !slices.ContainsFunc(first[:len(kinds())], func(f fault) bool { return f.kind == kind }) {
			t.Errorf("the first %d faults contain no %s", len(kinds()), kind)
		}
	}
}
