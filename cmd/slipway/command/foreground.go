package command

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// runForeground runs components in this process until it receives SIGTERM or SIGINT.
func runForeground(ctx context.Context, components ...component.Component) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var entries []component.Entry
	for _, c := range components {
		entries = append(entries, component.Entry{Component: c})
	}
	return component.Run(ctx, entries, func(component.Event) {}, platform.ReleaseMemory)
}
