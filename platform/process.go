package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/capability"
	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/node/nodeconfig"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// RunControlPlane runs the components of the control plane in this process, until ctx ends.
func (h *Host) RunControlPlane(ctx context.Context) error {
	if err := capability.Drop(unneededCapabilities()...); err != nil {
		slog.Warn("cannot drop capabilities of the control plane", "error", err)
	}
	return h.runProcess(ctx, ControlPlane, controlPlaneTable())
}

// RunNode runs the components of the node in this process, until ctx ends.
func (h *Host) RunNode(ctx context.Context) error {
	if h.Joined() {
		return h.runProcess(ctx, Node, memberTable())
	}
	return h.runProcess(ctx, Node, nodeTable())
}

// runProcess runs the components of a table and reports their states to the supervisor.
func (h *Host) runProcess(ctx context.Context, name string, table []entry) error {
	memory.LimitGarbage()
	h.process = name
	if err := h.prepare(); err != nil {
		return err
	}
	if name == ControlPlane {
		if err := errors.Join(h.checkVersion(), h.connect()); err != nil {
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
	// programs that components start must not inherit it
	syscall.CloseOnExec(supervisor.ReportDescriptor)
	report := component.Reporter(os.NewFile(supervisor.ReportDescriptor, "reports"))
	err = component.Run(ctx, entries, report, func(ctx context.Context) {
		close(h.allReady)
		if name == ControlPlane {
			if err := h.recordVersion(); err != nil {
				slog.Warn("the version of the data is not recorded", "error", err)
			}
		}
		ReleaseMemory(ctx)
	})
	if errors.Is(err, nodeconfig.ErrRestart) && ctx.Err() == nil {
		return restart()
	}
	return err
}

// restart replaces the program of this process by a new start of itself. The supervisor, which
// delays further starts of a process that has ended, does not notice it.
func restart() error {
	// CloseOnExec has set the close-on-exec flag.
	if _, err := unix.FcntlInt(supervisor.ReportDescriptor, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return fmt.Errorf("restart: %w", supervisor.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// featureGates returns the feature gates of a process. Upstream reads them before the flags of its
// components are set.
func (h *Host) featureGates(process string) (map[string]bool, error) {
	if process == ControlPlane {
		return h.ControlPlaneGates()
	}
	return h.NodeGates()
}

// ReleaseMemory returns memory that only the start of this process needed.
func ReleaseMemory(ctx context.Context) {
	if err := memory.ReleaseAfterStart(ctx); err != nil {
		slog.Warn("cannot release memory of the start", "error", err)
	}
}

// unneededCapabilities returns the capabilities that neither the control plane nor a FlexVolume
// driver uses, which it calls to attach volumes. Drivers need the others: they load modules, create
// devices and mount.
//
// Containerd and the node keep all capabilities, because a privileged container has those of
// containerd.
func unneededCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_AUDIT_CONTROL, unix.CAP_AUDIT_READ, unix.CAP_AUDIT_WRITE, unix.CAP_BLOCK_SUSPEND, unix.CAP_BPF,
		unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_NET_BROADCAST,
		unix.CAP_PERFMON, unix.CAP_SYSLOG, unix.CAP_SYS_BOOT, unix.CAP_SYS_PACCT, unix.CAP_SYS_PTRACE,
		unix.CAP_SYS_TIME, unix.CAP_SYS_TTY_CONFIG, unix.CAP_WAKE_ALARM,
	}
}
