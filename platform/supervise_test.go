package platform

import (
	"context"
	"testing"

	"github.com/slipway-platform/slipway/platform/controlplane"
	"github.com/slipway-platform/slipway/platform/nodeprocess"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func TestOrderOfEveryTableIsValid(t *testing.T) {
	for name, components := range map[string][]supervisor.ComponentStatus{
		"control plane": controlplane.Table().Components(), "node": nodeprocess.Table(false).Components(), "joined node": nodeprocess.Table(true).Components(),
	} {
		var entries []component.Entry
		for _, c := range components {
			entries = append(entries, component.Entry{Component: named(c.Name), After: c.After})
		}
		if err := component.CheckOrder(entries); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// named is a component that only has a name.
type named string

func (n named) Name() string                              { return string(n) }
func (named) Run(ctx context.Context, ready func()) error { ready(); <-ctx.Done(); return nil }
