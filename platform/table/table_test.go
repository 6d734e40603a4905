package table

import (
	"context"
	"testing"

	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// named is a component that only has a name.
type named string

func (n named) Name() string                              { return string(n) }
func (named) Run(ctx context.Context, ready func()) error { ready(); <-ctx.Done(); return nil }

func TestReloaderGetsAdjustmentsOfAllEntries(t *testing.T) {
	adjust := func(name, key string) Entry[int] {
		return Entry[int]{name, nil, func(int) (component.Component, error) {
			return Adjustable{named(name), []reload.Adjustment{{Keys: []string{key}}}}, nil
		}, ""}
	}
	reloader := &reload.Reloader{}
	configuration := Entry[int]{"configuration", nil, func(int) (component.Component, error) { return reloader, nil }, ""}
	entries, err := Table[int]{adjust("before", "a"), configuration, adjust("after", "b")}.Build(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := reloader.Adjustments; len(a) != 2 || a[0].Keys[0] != "a" || a[1].Keys[0] != "b" {
		t.Errorf("got %+v", a)
	}
	if _, ok := entries[0].Component.(named); !ok {
		t.Errorf("the component is a %T", entries[0].Component)
	}
}
