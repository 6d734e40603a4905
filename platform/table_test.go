package platform

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

func TestOrderOfEveryTableIsValid(t *testing.T) {
	for name, table := range map[string][]entry{ControlPlane: controlPlaneTable(), Node: nodeTable(), "joined node": memberTable()} {
		var entries []component.Entry
		for _, e := range table {
			entries = append(entries, component.Entry{Component: named(e.name), After: e.after})
		}
		if err := component.CheckOrder(entries); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReloaderGetsAdjustmentsOfAllEntries(t *testing.T) {
	adjust := func(name, key string) entry {
		return entry{name, nil, func(*Host) (component.Component, error) {
			return adjustable{named(name), []reload.Adjustment{{Keys: []string{key}}}}, nil
		}, ""}
	}
	reloader := &reload.Reloader{}
	configuration := entry{"configuration", nil, func(*Host) (component.Component, error) { return reloader, nil }, ""}
	entries, err := (&Host{}).build([]entry{adjust("before", "a"), configuration, adjust("after", "b")})
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
