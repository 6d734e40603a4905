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
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// RunControlPlane runs the components of the control plane in this process, until ctx ends.
func (h *Host) RunControlPlane(ctx context.Context) error {
	if err := capability.Drop(unneededCapabilities()...); err != nil {
		slog.Warn("the control plane keeps capabilities that it does not need", "error", err)
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
	if err := kube.Globals(nil); err != nil {
		return err
	}
	entries, err := h.build(table)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(supervisor.ReportDescriptor) // programs that components start must not have it
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
		slog.Warn("memory of the start is not released", "error", err)
	}
}

// prepare creates what the processes need before they start: addresses, credentials and files. The
// supervisor and each process call it; only the first call changes something.
func (h *Host) prepare() (err error) {
	if err := h.findAddress(); err != nil {
		return err
	}
	if h.credentials, err = pki.Ensure(h.pkiSpec()); err != nil {
		return err
	}
	if err := h.writeRegistryHosts(); err != nil {
		return err
	}
	if users := h.DeveloperFile(); users != "" {
		return htpasswd.EnsureFirstUser(users, Developer, h.DeveloperPassword())
	}
	return nil
}

// Developer is the user of the first start.
const Developer = "developer"

// writeRegistryHosts configures containerd for the cluster's registry.
func (h *Host) writeRegistryHosts() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	address, err := h.registryAddress()
	if err != nil {
		return err
	}
	return containerd.RegistryHosts{
		Dir:     h.Node.Slipway.RegistryConfigDirectory,
		Names:   append(h.registryHosts(), registry.ServiceHost),
		Address: address, CAFile: h.credentials.CA.Cert,
	}.Write()
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

// Lock makes this process the only supervisor of the data directory, until the file is closed or
// the process ends.
func (h *Host) Lock() (*os.File, error) {
	if err := os.MkdirAll(h.RunDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	if err := h.allowTraversal(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(h.RunDir()+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		file.Close()
		return nil, fmt.Errorf("another slipway runs with the data directory %q; see: slipway status", h.DataDir)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	return file, nil
}

// allowTraversal lets other users enter the directories above the containers' root file systems:
// the root user of a pod with its own user namespace is one of them. The files below have their own
// modes.
func (h *Host) allowTraversal() error {
	for _, dir := range []string{h.DataDir, h.RunDir()} {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o111)
		}
		if err != nil {
			return fmt.Errorf("let containers enter their directories: %w", err)
		}
	}
	return nil
}
