package platform

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/slipway-platform/slipway/internal/capability"
	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/internal/profile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/node/groupconfig"
	"github.com/slipway-platform/slipway/platform/controlplane"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/nodeprocess"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// RunControlPlane runs the control plane's components in this process until ctx is done.
func RunControlPlane(ctx context.Context, h *host.Host) error {
	memory.LimitGarbage()
	if err := capability.Drop(kube.UnneededCapabilities()...); err != nil {
		slog.Warn("cannot drop control plane capabilities", "error", err)
	}
	if err := h.Prepare(); err != nil {
		return err
	}
	c, err := controlplane.New(ctx, h)
	if err != nil {
		return err
	}
	gates, err := h.ControlPlaneGates()
	if err != nil {
		return err
	}
	return runProcess(ctx, h.ProfileSocket(host.ControlPlane), gates, c)
}

// RunNode runs the node's components in this process until ctx is done.
func RunNode(ctx context.Context, h *host.Host) error {
	memory.LimitGarbage()
	if err := h.Prepare(); err != nil {
		return err
	}
	gates, err := h.NodeGates()
	if err != nil {
		return err
	}
	return runProcess(ctx, h.ProfileSocket(host.Node), gates, nodeprocess.New(h))
}

// process creates the components of a process.
type process interface {
	Components() ([]component.Entry, error)
	// Started is called when all components are ready.
	Started()
}

// runProcess runs the components of a process, reports their states to the supervisor, and serves
// profiles on a socket. It sets the feature gates before it creates the components, because
// upstream code reads them before its components' flags are set.
func runProcess(ctx context.Context, profileSocket string, gates map[string]bool, p process) error {
	if err := kube.Globals(gates); err != nil {
		return err
	}
	entries, err := p.Components()
	if err != nil {
		return err
	}
	var profiles sync.WaitGroup
	defer profiles.Wait()
	profileCtx, stopProfiles := context.WithCancel(ctx)
	defer stopProfiles()
	profiles.Go(func() {
		if err := profile.Serve(profileCtx, profileSocket); err != nil {
			slog.Warn("cannot serve the profiles of this process", "error", err)
		}
	})
	err = component.Run(ctx, entries, supervisor.Reporter(), func(ctx context.Context) {
		p.Started()
		ReleaseMemory(ctx)
	})
	if errors.Is(err, groupconfig.ErrRestart) && ctx.Err() == nil {
		return supervisor.Reexec()
	}
	return err
}

// ReleaseMemory releases memory that this process required only while it was starting.
func ReleaseMemory(ctx context.Context) {
	if err := memory.ReleaseAfterStart(ctx); err != nil {
		slog.Warn("cannot release unused memory after the start", "error", err)
	}
}
