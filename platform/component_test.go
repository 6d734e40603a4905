package platform

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scripted is a part that does what a test wants.
type scripted struct {
	name string
	run  func(ctx context.Context, ready func()) error
}

func (s scripted) Name() string                                { return s.name }
func (s scripted) Run(ctx context.Context, ready func()) error { return s.run(ctx, ready) }

// steady serves until it is stopped, and notes both.
func steady(name string, note func(string)) Component {
	return scripted{name, func(ctx context.Context, ready func()) error {
		note("start " + name)
		ready()
		<-ctx.Done()
		note("stop " + name)
		return nil
	}}
}

// diary collects notes of several goroutines in order.
type diary struct {
	mu    sync.Mutex
	notes []string
}

func (d *diary) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, text)
}

func (d *diary) has(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.notes, text)
}

func TestTheTablesOfThisHostCanBeStarted(t *testing.T) {
	for name, table := range map[string][]row{controlPlaneName: controlPlaneTable(), nodeName: nodeTable()} {
		var parts []Part
		for _, row := range table {
			parts = append(parts, Part{Component: scripted{name: row.name}, After: row.after})
		}
		if err := checkOrder(parts); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATableThatCannotBeStartedIsAnError(t *testing.T) {
	part := func(name string, after ...string) Part { return Part{Component: scripted{name: name}, After: after} }
	for name, test := range map[string]struct {
		parts []Part
		want  string
	}{
		"cycle":        {[]Part{part("a", "b"), part("b", "a"), part("c")}, `parts ["a" "b"] wait for each other`},
		"unknown part": {[]Part{part("a", "ghost")}, `parts ["a"] wait for each other or for a part that does not exist`},
		"twice":        {[]Part{part("a"), part("a")}, `part "a" is in the table twice`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkOrder(test.parts); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPartsStartInOrderAndStopInReverse(t *testing.T) {
	var d diary
	ctx, cancel := context.WithCancel(t.Context())
	parts := []Part{
		{steady("clients", d.note), []string{"server"}},
		{steady("server", d.note), []string{"store"}},
		{steady("store", d.note), nil},
	}
	err := runParts(ctx, parts, func(event Event) {
		if event.Part == "clients" && event.State == Ready {
			cancel()
		}
	}, func(context.Context) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"start store", "start server", "start clients", "stop clients", "stop server", "stop store"}
	if !slices.Equal(d.notes, want) {
		t.Errorf("happened %q, want %q", d.notes, want)
	}
}

func TestAFailedPartStopsTheOthersAndIsNamed(t *testing.T) {
	var d diary
	broken := scripted{"broken", func(context.Context, func()) error { return errors.New("disk is full") }}
	parts := []Part{
		{steady("store", d.note), nil},
		{broken, []string{"store"}},
		{steady("never", d.note), []string{"broken"}},
	}
	err := runParts(t.Context(), parts, func(Event) {}, func(context.Context) {})
	if err == nil || err.Error() != "broken: disk is full" {
		t.Errorf("error is %v", err)
	}
	if !d.has("stop store") || d.has("start never") {
		t.Errorf("happened %q", d.notes)
	}
}

func TestAPartThatEndsByItselfHasFailed(t *testing.T) {
	tired := scripted{"tired", func(context.Context, func()) error { return nil }}
	err := runParts(t.Context(), []Part{{tired, nil}}, func(Event) {}, func(context.Context) {})
	if err == nil || err.Error() != "tired: it stopped by itself" {
		t.Errorf("error is %v", err)
	}
}

func TestAProcessIsReadyWhenAllOfItsPartsAre(t *testing.T) {
	process := ProcessStatus{Parts: []PartStatus{{Name: "a"}, {Name: "b"}}}
	now := time.Unix(1000, 0)
	process.apply(Event{Part: "a", State: Starting}, now)
	process.apply(Event{Part: "a", State: Ready}, now.Add(2*time.Second))
	if process.State != Starting || process.Parts[0].StartSeconds != 2 {
		t.Errorf("after one part: %+v", process)
	}
	process.apply(Event{Part: "b", State: Ready}, now.Add(3*time.Second))
	if process.State != Ready || process.Since != now.Add(3*time.Second) {
		t.Errorf("after both parts: %+v", process)
	}
	process.apply(Event{Part: "b", State: Failed, Error: "b: gone"}, now.Add(4*time.Second))
	if process.State == Ready || process.Parts[1].Error != "b: gone" {
		t.Errorf("after a failure: %+v", process)
	}
}
