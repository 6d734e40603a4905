package platform

import (
	"context"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/capability"
	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/kube"
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
func (h *Host) RunNode(ctx context.Context) error { return h.runProcess(ctx, Node, nodeTable()) }

// runProcess runs the components of a table and reports their states to the supervisor.
func (h *Host) runProcess(ctx context.Context, name string, table []entry) error {
	endStart := memory.BeginStart()
	h.process = name
	if err := h.prepare(); err != nil {
		return err
	}
	if name == ControlPlane {
		if err := h.connect(); err != nil {
			return err
		}
	}
	if err := kube.Globals(nil); err != nil {
		return err
	}
	entries, err := h.build(table)
	if err != nil {
		return err
	}
	// programs that components start must not inherit it
	syscall.CloseOnExec(supervisor.ReportDescriptor)
	report := component.Reporter(os.NewFile(supervisor.ReportDescriptor, "reports"))
	return component.Run(ctx, entries, report, func(ctx context.Context) {
		endStart()
		close(h.allReady)
		ReleaseMemory(ctx)
	})
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
