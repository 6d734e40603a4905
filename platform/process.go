package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/slipway-platform/slipway/internal/capability"
	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/internal/profile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/node/nodeconfig"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// RunControlPlane runs the control plane components in this process until ctx is done.
func (h *Host) RunControlPlane(ctx context.Context) error {
	if err := capability.Drop(kube.UnneededCapabilities()...); err != nil {
		slog.Warn("cannot drop capabilities of the control plane", "error", err)
	}
	return h.runProcess(ctx, ControlPlane, controlPlaneTable())
}

// RunNode runs the node components in this process until ctx is done.
func (h *Host) RunNode(ctx context.Context) error {
	if h.Joined() {
		return h.runProcess(ctx, Node, memberTable())
	}
	return h.runProcess(ctx, Node, nodeTable())
}

// runProcess runs the components in a table and reports their states to the supervisor.
func (h *Host) runProcess(ctx context.Context, name string, table []entry) error {
	memory.LimitGarbage()
	h.process = name
	if err := h.prepare(); err != nil {
		return err
	}
	if name == ControlPlane {
		if err := h.CheckVersion(); err != nil {
			return err
		}
		h.saveBeforeUpgrade(ctx)
		if err := h.connect(); err != nil {
			return err
		}
	}
	gates, err := h.featureGates(name)
	if err != nil {
		return err
	}
	if err := kube.Globals(gates); err != nil {
		return err
	}
	entries, err := h.build(table)
	if err != nil {
		return err
	}
	var profiles sync.WaitGroup
	defer profiles.Wait()
	profileCtx, stopProfiles := context.WithCancel(ctx)
	defer stopProfiles()
	profiles.Go(func() { h.serveProfiles(profileCtx) })
	err = component.Run(ctx, entries, supervisor.Reporter(), func(ctx context.Context) {
		close(h.allReady)
		if name == ControlPlane {
			if err := h.versionFile().Record(kube.Version()); err != nil {
				slog.Warn("the version of the data is not recorded", "error", err)
			}
		}
		ReleaseMemory(ctx)
	})
	if errors.Is(err, nodeconfig.ErrRestart) && ctx.Err() == nil {
		return supervisor.Reexec()
	}
	return err
}

// serveProfiles serves the profiles of this process until ctx is done.
func (h *Host) serveProfiles(ctx context.Context) {
	if err := profile.Serve(ctx, h.ProfileSocket(h.process)); err != nil {
		slog.Warn("this process has no profiles", "error", err)
	}
}

// CheckVersion returns an error with the upgrade path if this program must not use the host's data,
// because the data is of another version of Kubernetes.
func (h *Host) CheckVersion() error {
	if err := h.versionFile().Check(kube.Version()); err != nil {
		return fmt.Errorf("start on the data in %q: %w", h.DataDir, err)
	}
	return nil
}

// featureGates returns the feature gates for a process. They must be set before the components are
// created, because upstream code reads feature gates before its components' flags are set.
func (h *Host) featureGates(process string) (map[string]bool, error) {
	if process == ControlPlane {
		return h.ControlPlaneGates()
	}
	return h.NodeGates()
}

// ReleaseMemory releases memory that this process required only during its start.
func ReleaseMemory(ctx context.Context) {
	if err := memory.ReleaseAfterStart(ctx); err != nil {
		slog.Warn("cannot release memory of the start", "error", err)
	}
}
