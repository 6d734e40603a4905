package platform

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/memory"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/pki"
)

// prepare makes what must be there before the first process: the machine's address and identities. It is repeated by each process, for which
// everything is there already.
func (h *host) prepare() (err error) {
	if err := h.locate(); err != nil {
		return err
	}
	if h.identity, err = pki.Ensure(h.pkiSpec()); err != nil {
		return err
	}
	if err := h.ensureRegistryConfig(); err != nil {
		return err
	}
	return h.ensureDeveloper()
}

// processes are what the supervisor runs.
func (h *host) processes() ([]process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	own := func(name string) func() (*exec.Cmd, error) {
		args := []string{name, "--data-dir", h.dataDir}
		if h.file != "" {
			args = append(args, "--config", h.file)
		}
		return func() (*exec.Cmd, error) { return exec.Command(self, args...), nil }
	}
	return []process{
		{
			name: controlPlaneName, parts: partStatuses(controlPlaneTable()), command: own(controlPlaneName),
			stopGrace: 15 * time.Second, logFile: h.logFile(controlPlaneName), group: h.group(controlPlaneName),
		},
		{
			name: containerdName, parts: partStatuses([]row{{name: containerdName}}),
			command: func() (*exec.Cmd, error) {
				runtime, err := h.runtime()
				if err != nil {
					return nil, err
				}
				return runtime.Command(context.Background())
			},
			waitReady: containerd.Runtime{Socket: h.containerdSocket()}.WaitReady,
			stopGrace: 10 * time.Second, logFile: h.logFile(containerdName), group: h.group(containerdName),
		},
		{
			name: nodeName, parts: partStatuses(nodeTable()), command: own(nodeName),
			stopGrace: 5 * time.Second, logFile: h.logFile(nodeName), group: h.group(nodeName),
		},
	}, nil
}

// runtime is this host's containerd, after its programs have been unpacked.
func (h *host) runtime() (containerd.Runtime, error) {
	programs, err := h.programs()
	if err != nil {
		return containerd.Runtime{}, err
	}
	return containerd.Runtime{
		Program: programs.Containerd, Shim: programs.Shim, Runc: programs.Runc,
		Root: h.Node.Slipway.ContainerdDirectory, State: h.containerdState(), Socket: h.containerdSocket(),
		CNIConfDir: h.cniConfDir(), CNIBinDir: programs.Dir,
		RegistryConfigDir: h.Node.Slipway.RegistryConfigDirectory,
		SandboxImage:      image.PauseName,
	}, nil
}

func controlPlaneCommand(opts *options) *cobra.Command {
	return processCommand(opts, controlPlaneName, "Run the control plane's parts (started by the supervisor)", controlPlaneTable)
}

func nodeCommand(opts *options) *cobra.Command {
	return processCommand(opts, nodeName, "Run the node's parts (started by the supervisor)", nodeTable)
}

// reportsTo is the descriptor on which the supervisor listens for a process's events.
const reportsTo = 3

func processCommand(opts *options, name, short string, table func() []row) *cobra.Command {
	return &cobra.Command{
		Use:    name,
		Short:  short,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			setLogOutput(os.Stderr)
			started := memory.BeginStart()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			h, err := opts.load()
			if err != nil {
				return err
			}
			h.role = name
			if name == controlPlaneName {
				if err := dropCapabilities(needless()); err != nil {
					slog.Warn("the control plane keeps capabilities that it does not need", "error", err)
				}
			}
			if err := h.prepare(); err != nil {
				return err
			}
			if err := kube.Globals(nil); err != nil {
				return err
			}
			parts, err := h.build(table())
			if err != nil {
				return err
			}
			syscall.CloseOnExec(reportsTo) // it is not for the programs that the parts start
			return runParts(ctx, parts, reporter(os.NewFile(reportsTo, "reports")), func(ctx context.Context) {
				started()
				close(h.calm)
				releaseMemory(ctx)
			})
		},
	}
}

// releaseMemory gives back what the start of this process needed.
func releaseMemory(ctx context.Context) {
	if err := memory.ReleaseAfterStart(ctx); err != nil {
		slog.Warn("memory of the start is kept", "error", err)
	}
}

// logIgnored names the settings of the files that this version does not act upon.
func (h *host) logIgnored() {
	if ignored := h.Ignored(); len(ignored) > 0 {
		slog.Warn("settings that this version does not act upon", "keys", strings.Join(ignored, ", "))
	}
}
