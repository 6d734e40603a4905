package platform

import (
	"context"
	"io"
)

type idle struct{}

func (*idle) Name() string                                { return "flexvolume" }
func (*idle) Run(ctx context.Context, ready func()) error { ready(); <-ctx.Done(); return nil }

func (h *host) preflight(ctx context.Context, out io.Writer) error { return nil }
