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
	"github.com/slipway-platform/slipway/platform/controlplane"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/nodeprocess"
	"github.com/slipway-platform/slipway/platform/preflight"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
	"github.com/slipway-platform/slipway/supervisor/plan"
)

// Supervise prepares the host and replaces this process with the host's supervisor. lock is the
// data directory's lock. Supervise returns only if an error occurs or ctx is done.
func Supervise(ctx context.Context, h *host.Host, lock *os.File) error {
	if ignored := h.Ignored(); len(ignored) > 0 {
		slog.Warn("the configuration contains settings without effect", "keys", strings.Join(ignored, ", "))
	}
	if err := supervisor.ProtectFromOOM(); err != nil {
		slog.Warn("cannot protect this process from the kernel's OOM killer", "error", err)
	}
	if err := preflight.Raise("/", preflight.Limits()); err != nil {
		slog.Warn("cannot raise kernel limit", "error", err)
	}
	if err := h.Prepare(); err != nil {
		return err
	}
	work, err := planOf(h)
	if err != nil {
		return err
	}
	if err := createCgroups(h, work.Processes); err != nil {
		return err
	}
	program, err := payload.UnpackSupervisor(h.Path("bin", "supervisor"))
	if err != nil || ctx.Err() != nil {
		return err
	}
	return work.Exec(program, filepath.Join(h.RunDir(), "plan.json"), lock)
}

// planOf returns the supervisor's plan. If the machine's address changes, the supervisor prepares
// the host again, so the processes restart with certificates and a Node object for the new address.
// Pods keep running.
func planOf(h *host.Host) (plan.Plan, error) {
	executable, err := os.Executable()
	if err != nil {
		return plan.Plan{}, fmt.Errorf("find this program: %w", err)
	}
	self := func(args ...string) []string {
		command := append([]string{executable}, args...)
		command = append(command, "--data-dir", h.DataDir)
		if h.File != "" {
			command = append(command, "--config", h.File)
		}
		return command
	}
	return plan.Plan{
		Version: version.Slipway(), DataDir: h.DataDir, Socket: h.Socket(), Log: h.LogFile(host.Supervisor),
		Processes:  processes(h, self),
		Containerd: host.Containerd, ContainerdSocket: h.ContainerdSocket(),
		Address: h.Address, SecondAddress: h.SecondAddress, DualStack: h.Master.DualStack().Enabled(),
		NodeIP: h.Node.NodeIP, IgnoredDevices: h.IgnoredDevices(),
		Restart: self("run", "--"+CheckedFlag),
	}, nil
}

// CheckedFlag is the flag of `slipway run` that indicates that the machine has already been
// checked.
const CheckedFlag = "checked"

// processes returns the processes that the supervisor runs. self returns the command line for a
// process.
func processes(h *host.Host, self func(name ...string) []string) []supervisor.Process {
	stopTimeouts := map[string]time.Duration{host.ControlPlane: 15 * time.Second, host.Containerd: 10 * time.Second, host.Node: 5 * time.Second}
	var processes []supervisor.Process
	for _, status := range Processes(h) {
		processes = append(processes, supervisor.Process{
			Name: status.Name, Command: self(status.Name), Components: status.Components,
			StopTimeout: stopTimeouts[status.Name], LogFile: h.LogFile(status.Name), Cgroup: h.Cgroup(status.Name),
		})
	}
	return processes
}

// createCgroups creates the cgroups of the processes.
func createCgroups(h *host.Host, processes []supervisor.Process) error {
	reserve, err := node.ReserveOf(h.Node.VolumeDirectory)
	if err != nil {
		return err
	}
	var cgroups []string
	for _, process := range processes {
		cgroups = append(cgroups, process.Cgroup)
	}
	return node.CreateCgroups(h.Node.Slipway.CgroupRoot, h.PlatformCgroup(), cgroups, reserve)
}

// ExecContainerd replaces this process with the host's containerd. It unpacks the programs while
// the control plane starts. It returns only if an error occurs, and also reports the error to the
// supervisor.
func ExecContainerd(ctx context.Context, h *host.Host) error {
	report := supervisor.Reporter()
	err := execContainerd(ctx, h)
	report(component.Event{Component: host.Containerd, State: component.Failed, Error: err.Error()})
	return err
}

func execContainerd(ctx context.Context, h *host.Host) error {
	runtime, err := Runtime(h)
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
func Runtime(h *host.Host) (containerd.Runtime, error) {
	programs, err := h.Programs()
	if err != nil {
		return containerd.Runtime{}, err
	}
	configuration, plugins := h.CNIConfDir(), []string{programs.Dir}
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

// Processes returns all processes on the host and their components, all marked as not running.
func Processes(h *host.Host) []supervisor.ProcessStatus {
	node := supervisor.ProcessStatus{Name: host.Node, State: component.Stopped, Components: nodeprocess.Table(h.Joined()).Components()}
	runtime := supervisor.ProcessStatus{
		Name: host.Containerd, State: component.Stopped,
		Components: []supervisor.ComponentStatus{{Name: host.Containerd, State: component.Stopped}},
	}
	if h.Joined() {
		return []supervisor.ProcessStatus{runtime, node}
	}
	return []supervisor.ProcessStatus{
		{Name: host.ControlPlane, State: component.Stopped, Components: controlplane.Table().Components()}, runtime, node,
	}
}
