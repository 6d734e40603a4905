// Package containerd configures and starts containerd, the container runtime of a host, as a child process of slipway.
//
// containerd keeps nothing outside of the directories that it is given here, so that it neither meets another containerd of the
// same machine nor leaves anything behind: images and snapshots below Root, everything of this boot (sockets,
// the state of running containers, network namespaces) below State. Its configuration file is written at each start from the
// fields of Runtime and is not meant to be edited; what an administrator may want to set has a field of its own.
//
// The containers and their shims do not end with containerd: a new containerd finds them in State and goes on with them.
package containerd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopDelay is how long containerd has to end after SIGTERM before it is killed. It only has to close its database:
// containers go on without it.
const stopDelay = 10 * time.Second

// Runtime is a containerd of one host. All paths are absolute.
type Runtime struct {
	// Program, Shim and Runc are the programs to run: see internal/payload.
	Program, Shim, Runc string
	// Root keeps images, snapshots and containers: it must survive a restart of the machine.
	Root string
	// State keeps what is true of this boot only. It must be used by nothing else: it is emptied after a restart of the machine.
	State string
	// Socket is where containerd and its CRI plugin are served: a Unix socket for root alone.
	Socket string
	// CNIConfDir has the network configuration of pods, CNIBinDir the CNI plugins.
	CNIConfDir, CNIBinDir string
	// RegistryConfigDir has a directory with a hosts.toml for each registry that has mirrors or settings; see package image.
	RegistryConfigDir string
	// SandboxImage is the image of pod sandboxes. It has to be loaded before the first pod starts.
	SandboxImage string
	// LogLevel is one of debug, info, warn, error; empty means warn.
	LogLevel string
}

// Name returns the name of the part.
func (r Runtime) Name() string { return "containerd" }

// Command prepares the directories, writes the configuration and returns containerd's command, ready to start; the caller
// sets its output. When ctx ends, the process is asked to end with SIGTERM and killed if it does not within 10 seconds; its
// containers go on. It runs in a process group of its own, so that an interrupt from the keyboard does not reach it or its shims.
func (r Runtime) Command(ctx context.Context) (*exec.Cmd, error) {
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("prepare containerd: %w", err)
	}
	data, err := r.config(inspectHost(r.Root))
	if err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	path := filepath.Join(r.State, "config.toml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	command := exec.CommandContext(ctx, r.Program, "--config", path)
	// Like our own processes it gives up a little processor time for memory; an administrator's own value wins.
	if os.Getenv("GOGC") == "" {
		command.Env = append(os.Environ(), "GOGC=50")
	}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopDelay
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, nil
}

// prepare makes State fit for this boot and creates the directories.
func (r Runtime) prepare() error {
	if err := cleanState(r.State); err != nil {
		return err
	}
	for _, dir := range []string{r.Root, r.State, r.ShimSocketDir(), filepath.Dir(r.Socket)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// The root of a pod with users of its own, which is nobody on the host, goes through State to its file system.
	if err := os.Chmod(r.State, 0o711); err != nil {
		return err
	}
	for _, dir := range []string{r.CNIConfDir, r.RegistryConfigDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
