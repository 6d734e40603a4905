package component

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestOptionalComponentReportsErrorUntilItServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	optional := &Optional{
		Component: "router", RetryInterval: time.Nanosecond,
		Serve: func(ctx context.Context, ready func(), note func(string)) error {
			switch attempts++; attempts {
			case 1, 2:
				return errors.New("port is in use")
			case 3:
				ready()
				note("a route is missing")
				return errors.New("HAProxy ended")
			}
			ready()
			cancel()
			<-ctx.Done()
			return ctx.Err()
		},
	}
	var events []Event
	err := Run(ctx, []Entry{{Component: optional}}, func(event Event) { events = append(events, event) }, ignoreReady)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, event := range events {
		got = append(got, string(event.State)+" "+event.Note)
	}
	want := []string{
		"waiting ", "starting ", "ready ", "ready port is in use", "ready ", "ready a route is missing",
		"ready HAProxy ended", "ready ", "stopped ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestOptionalComponentIsReadyBeforeItServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	optional := &Optional{
		Component: "storage", ReadyFirst: true,
		Serve: func(ctx context.Context, _ func(), _ func(string)) error { <-ctx.Done(); return ctx.Err() },
	}
	if err := Run(ctx, []Entry{{Component: optional}}, ignoreEvent, func(context.Context) { cancel() }); err != nil {
		t.Error(err)
	}
}
