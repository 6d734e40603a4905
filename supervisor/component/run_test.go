package component

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is a component that runs a function from a test.
type fake struct {
	name string
	run  func(ctx context.Context, ready func()) error
}

func (f fake) Name() string                                { return f.name }
func (f fake) Run(ctx context.Context, ready func()) error { return f.run(ctx, ready) }

// serving returns a component that serves until it is stopped. It records when the component starts
// and stops.
func serving(name string, record func(string)) Component {
	return fake{name, func(ctx context.Context, ready func()) error {
		record("start " + name)
		ready()
		<-ctx.Done()
		record("stop " + name)
		return nil
	}}
}

// journal records the actions of several goroutines, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) record(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, text)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.entries, text)
}

func ignoreEvent(Event)           {}
func ignoreReady(context.Context) {}

func TestCheckOrderRejectsUnstartableTable(t *testing.T) {
	entry := func(name string, after ...string) Entry { return Entry{Component: fake{name: name}, After: after} }
	tests := []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"cycle", []Entry{entry("a", "b"), entry("b", "a"), entry("c")}, `components ["a" "b"] wait for each other`},
		{
			"unknown component", []Entry{entry("a", "ghost")},
			`components ["a"] wait for each other or for a component that does not exist`,
		},
		{"duplicate name", []Entry{entry("a"), entry("a")}, `component "a" is in the table twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := CheckOrder(tt.entries); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestComponentsStartInOrderAndStopInReverse(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	entries := []Entry{
		{Component: serving("clients", j.record), After: []string{"server"}},
		{Component: serving("server", j.record), After: []string{"store"}},
		{Component: serving("store", j.record)},
	}
	err := Run(ctx, entries, func(event Event) {
		if event.Component == "clients" && event.State == Ready {
			cancel()
		}
	}, ignoreReady)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"start store", "start server", "start clients", "stop clients", "stop server", "stop store"}
	if !slices.Equal(j.entries, want) {
		t.Errorf("got %q, want %q", j.entries, want)
	}
}

// draining is a component that unblocks its clients when its process stops.
type draining struct {
	fake
	drained chan struct{}
}

func (d draining) Drain() { close(d.drained) }

func TestComponentIsDrainedBeforeItsClientsStop(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	store := draining{fake{"store", serving("store", j.record).Run}, make(chan struct{})}
	client := fake{"client", func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		<-store.drained // wait until the last request has been handled
		j.record("stop client")
		return nil
	}}
	err := Run(ctx, []Entry{{Component: client, After: []string{"store"}}, {Component: store}}, ignoreEvent, func(context.Context) { cancel() })
	if want := []string{"start store", "stop client", "stop store"}; err != nil || !slices.Equal(j.entries, want) {
		t.Errorf("got %q, %v, want %q", j.entries, err, want)
	}
}

func TestErrorNamesFailedComponentAndOthersStop(t *testing.T) {
	var j journal
	broken := fake{"broken", func(context.Context, func()) error { return errors.New("disk is full") }}
	entries := []Entry{
		{Component: serving("store", j.record)},
		{Component: broken, After: []string{"store"}},
		{Component: serving("dependent", j.record), After: []string{"broken"}},
	}
	err := Run(t.Context(), entries, ignoreEvent, ignoreReady)
	if err == nil || err.Error() != "broken: disk is full" {
		t.Errorf("got error %v", err)
	}
	if !j.has("stop store") || j.has("start dependent") {
		t.Errorf("got %q", j.entries)
	}
}

func TestComponentThatEndsWithoutRequestFails(t *testing.T) {
	short := fake{"short", func(context.Context, func()) error { return nil }}
	err := Run(t.Context(), []Entry{{Component: short}}, ignoreEvent, ignoreReady)
	if err == nil || err.Error() != "short: stopped unexpectedly" {
		t.Errorf("got error %v", err)
	}
}

func TestDisabledComponentIsReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := Run(ctx, []Entry{{Component: Disabled("off")}}, ignoreEvent, func(context.Context) { cancel() }); err != nil {
		t.Error(err)
	}
}

// gate admits a component when its channel is closed. Until then, the component is on standby.
type gate chan struct{}

func (g gate) Wait(ctx context.Context, standby func()) error {
	standby()
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestComponentWaitsOnStandbyForGate(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	open := make(gate)
	entries := []Entry{
		{Component: serving("clients", j.record), After: []string{"server"}, Gate: open},
		{Component: serving("server", j.record), After: []string{"store"}, Gate: open},
		{Component: serving("store", j.record)},
	}
	var states []string
	var mu sync.Mutex
	err := Run(ctx, entries, func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, event.Component+" "+string(event.State))
		if event.Component == "clients" && event.State == Ready {
			cancel()
		}
	}, func(context.Context) {
		j.record("complete") // does not wait for components on standby
		close(open)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"start store", "complete", "start server", "start clients", "stop clients", "stop server", "stop store"}
	if !slices.Equal(j.entries, want) {
		t.Errorf("got %q, want %q", j.entries, want)
	}
	if !slices.Contains(states, "server standby") || !slices.Contains(states, "clients standby") {
		t.Errorf("got states %q", states)
	}
}

func TestComponentWithClosedGateRemainsOnStandby(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	entries := []Entry{{Component: serving("stopped", j.record), Gate: Closed{}}, {Component: serving("other", j.record)}}
	if err := Run(ctx, entries, ignoreEvent, func(context.Context) { cancel() }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"start other", "stop other"}; !slices.Equal(j.entries, want) {
		t.Errorf("got %q, want %q", j.entries, want)
	}
}
