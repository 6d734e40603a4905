package platform

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/platform/preflight"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
	"github.com/slipway-platform/slipway/supervisor/plan"
)

// Supervise prepares the host and replaces this process with the host's supervisor. lock is the
// data directory's lock. Supervise returns only if an error occurs or ctx is done.
func (h *Host) Supervise(ctx context.Context, lock *os.File) error {
	if ignored := h.Ignored(); len(ignored) > 0 {
		slog.Warn("the configuration contains settings without effect", "keys", strings.Join(ignored, ", "))
	}
	if err := supervisor.ProtectFromOOM(); err != nil {
		slog.Warn("cannot protect this process from the kernel's OOM killer", "error", err)
	}
	if err := preflight.Raise("/", preflight.Limits()); err != nil {
		slog.Warn("cannot raise kernel limit", "error", err)
	}
	if err := h.prepare(); err != nil {
		return err
	}
	work, err := h.plan()
	if err != nil {
		return err
	}
	if err := h.createCgroups(work.Processes); err != nil {
		return err
	}
	program, err := payload.UnpackSupervisor(h.path("bin", "supervisor"))
	if err != nil || ctx.Err() != nil {
		return err
	}
	return work.Exec(program, filepath.Join(h.RunDir(), "plan.json"), lock)
}

// plan returns the supervisor's plan. If the machine's address changes, the supervisor prepares the
// host again, so the processes restart with certificates and a Node object for the new address.
// Pods keep running.
func (h *Host) plan() (plan.Plan, error) {
	executable, err := os.Executable()
	if err != nil {
		return plan.Plan{}, fmt.Errorf("find own program: %w", err)
	}
	self := func(args ...string) []string {
		command := append([]string{executable}, args...)
		command = append(command, "--data-dir", h.DataDir)
		if h.file != "" {
			command = append(command, "--config", h.file)
		}
		return command
	}
	return plan.Plan{
		Version: version.Slipway(), DataDir: h.DataDir, Socket: h.Socket(), Log: h.LogFile(Supervisor),
		Processes:  h.processes(self),
		Containerd: Containerd, ContainerdSocket: h.ContainerdSocket(),
		Address: h.address, NodeIP: h.Node.NodeIP, IgnoredDevices: h.ignoredDevices(),
		Restart: self("run", "--"+CheckedFlag),
	}, nil
}

// CheckedFlag is the flag of `slipway run` that indicates that the machine has already been
// checked.
const CheckedFlag = "checked"

// processes returns the processes that the supervisor runs. self returns the command line for a
// process.
func (h *Host) processes(self func(name ...string) []string) []supervisor.Process {
	stopTimeouts := map[string]time.Duration{ControlPlane: 15 * time.Second, Containerd: 10 * time.Second, Node: 5 * time.Second}
	var processes []supervisor.Process
	for _, status := range h.Processes() {
		processes = append(processes, supervisor.Process{
			Name: status.Name, Command: self(status.Name), Components: status.Components,
			StopTimeout: stopTimeouts[status.Name], LogFile: h.LogFile(status.Name), Cgroup: h.cgroup(status.Name),
		})
	}
	return processes
}

// createCgroups creates the cgroups of the processes.
func (h *Host) createCgroups(processes []supervisor.Process) error {
	reserve, err := node.ReserveOf(h.Node.VolumeDirectory)
	if err != nil {
		return err
	}
	var cgroups []string
	for _, process := range processes {
		cgroups = append(cgroups, process.Cgroup)
	}
	return node.CreateCgroups(h.Node.Slipway.CgroupRoot, h.platformCgroup(), cgroups, reserve)
}

// ExecContainerd replaces this process with the host's containerd. It unpacks the programs while
// the control plane starts. It returns only if an error occurs, and also reports the error to the
// supervisor.
func (h *Host) ExecContainerd(ctx context.Context) error {
	report := supervisor.Reporter()
	err := h.execContainerd(ctx)
	report(component.Event{Component: Containerd, State: component.Failed, Error: err.Error()})
	return err
}

func (h *Host) execContainerd(ctx context.Context) error {
	runtime, err := h.Runtime()
	if err != nil {
		return err
	}
	command, err := runtime.Command(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return supervisor.Exec(command.Path, command.Args, command.Env)
}

// Runtime unpacks the programs and returns this host's containerd.
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
