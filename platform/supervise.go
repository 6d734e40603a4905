package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/platform/preflight"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// Supervise runs the processes of the host until ctx ends or a client requests the stop. The caller
// has the lock.
func (h *Host) Supervise(ctx context.Context) error {
	if ignored := h.Ignored(); len(ignored) > 0 {
		slog.Warn("the configuration contains settings without effect", "keys", strings.Join(ignored, ", "))
	}
	if err := supervisor.ProtectFromOOM(); err != nil {
		slog.Warn("cannot protect this process from the kernel's OOM killer", "error", err)
	}
	if err := preflight.Raise("/", preflight.Limits()); err != nil {
		slog.Warn("cannot raise kernel limit", "error", err)
	}
	for ctx.Err() == nil {
		err := h.superviseAddress(ctx)
		if errors.Is(err, supervisor.ErrStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// superviseAddress runs the processes until ctx ends or the machine's address changes. After a
// change, the processes restart with certificates and a node for the new address. Pods keep
// running.
func (h *Host) superviseAddress(ctx context.Context) error {
	if err := h.prepare(); err != nil {
		return err
	}
	processes, err := h.processes()
	if err != nil {
		return err
	}
	if err := h.createCgroups(processes); err != nil {
		return err
	}
	logs := []string{h.LogFile(Supervisor)}
	for _, p := range processes {
		logs = append(logs, p.LogFile)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { logfile.RotateAll(ctx, logs) })
	group.Go(func() {
		if address, changed := hostaddr.Wait(ctx, h.address, h.Node.NodeIP, h.ignoredDevices()...); changed {
			slog.Warn("the machine's address has changed; all processes restart", "old", h.address, "new", address)
			cancel()
		}
	})
	// The control plane starts at the same time; containerd and the node wait for the programs.
	var unpackErr error
	group.Go(func() {
		if _, unpackErr = h.programs(); unpackErr != nil {
			cancel()
		}
	})
	err = supervisor.New(version.Slipway(), h.DataDir, h.Socket(), processes).Run(ctx)
	cancel()
	group.Wait()
	if unpackErr != nil {
		return unpackErr
	}
	return err
}

// processes returns the processes of the supervisor.
func (h *Host) processes() ([]supervisor.Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	self := func(name string) func() (*exec.Cmd, error) {
		args := []string{name, "--data-dir", h.DataDir}
		if h.file != "" {
			args = append(args, "--config", h.file)
		}
		return func() (*exec.Cmd, error) { return exec.Command(executable, args...), nil }
	}
	runtime := func() (*exec.Cmd, error) {
		runtime, err := h.Runtime()
		if err != nil {
			return nil, err
		}
		return runtime.Command(context.Background())
	}
	var processes []supervisor.Process
	if !h.Joined() {
		processes = append(processes, supervisor.Process{
			Name: ControlPlane, Command: self(ControlPlane), StopTimeout: 15 * time.Second,
		})
	}
	processes = append(processes,
		supervisor.Process{
			Name: Containerd, Command: runtime, StopTimeout: 10 * time.Second,
			WaitReady: containerd.Runtime{Socket: h.ContainerdSocket()}.WaitReady,
		},
		supervisor.Process{Name: Node, Command: self(Node), StopTimeout: 5 * time.Second},
	)
	for i, status := range h.Processes() {
		p := &processes[i]
		p.Components, p.LogFile, p.Cgroup = status.Components, h.LogFile(p.Name), h.cgroup(p.Name)
	}
	return processes, nil
}

// Runtime returns this host's containerd. It unpacks its programs.
func (h *Host) Runtime() (containerd.Runtime, error) {
	programs, err := h.programs()
	if err != nil {
		return containerd.Runtime{}, err
	}
	configuration, plugins := h.cniConfDir(), []string{programs.Dir}
	if h.Master.HasOtherNetwork() {
		configuration, plugins = h.Node.CNIDirectories()
	}
	return containerd.Runtime{
		Program: programs.Containerd, Shim: programs.Shim, Runc: programs.Runc,
		Root: h.Node.Slipway.ContainerdDirectory, State: h.ContainerdState(), Socket: h.ContainerdSocket(),
		CNIConfDir: configuration, CNIBinDirs: plugins,
		RegistryConfigDir: h.Node.Slipway.RegistryConfigDirectory,
		SandboxImage:      image.PauseName,
	}, nil
}
