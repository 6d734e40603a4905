// Package containerd configures and starts containerd, the container runtime of a host, as a child
// process of slipway.
//
// containerd writes only to the directories of its Runtime, so that it neither conflicts with
// another containerd on the machine nor leaves files elsewhere: images and snapshots are in Root,
// and everything of this boot (sockets, the state of running containers, network namespaces) is in
// State. Its configuration file is written at each start from the fields of Runtime. Do not edit
// the file: each supported setting is a field.
//
// Containers and their shims outlive containerd: a new containerd finds them in State and continues
// to manage them.
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

// stopTimeout limits the time that containerd has to end after SIGTERM. It only has to close its
// database: containers continue without it.
const stopTimeout = 10 * time.Second

// Runtime is the containerd of a host. All paths are absolute.
type Runtime struct {
	// Program, Shim and Runc are the programs to run: see internal/payload.
	Program, Shim, Runc string
	// Root contains images, snapshots and containers. It must survive a reboot.
	Root string
	// State contains the state of this boot. It must have no other use: it is emptied after a
	// reboot.
	State string
	// Socket is the Unix socket of containerd and its CRI plugin. Only root can open it.
	Socket string
	// CNIConfDir contains the network configuration of pods, and CNIBinDirs contain the CNI plugins.
	CNIConfDir string
	CNIBinDirs []string
	// RegistryConfigDir contains a directory with a hosts.toml for each registry with mirrors or
	// settings; see package image.
	RegistryConfigDir string
	// SandboxImage is the image of pod sandboxes. It must be loaded before the first pod starts.
	SandboxImage string
	// LogLevel is one of debug, info, warn, error; empty means warn.
	LogLevel string
}

// Name returns the component's name.
func (r Runtime) Name() string { return "containerd" }

// Command prepares the directories, writes the configuration and returns containerd's command,
// ready to start. The caller sets its output. When ctx ends, the process gets SIGTERM, and SIGKILL
// after 10 seconds. Its containers continue. It has a separate process group, so that an interrupt
// from the keyboard does not reach it or its shims.
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
	// Like Slipway's processes, it trades a little CPU time for memory. Above GOMEMLIMIT, it returns
	// the memory that it used to unpack layers. An administrator's values take precedence.
	command.Env = os.Environ()
	// The shim searches runc in the PATH when containerd requests its features, for each pod.
	command.Env = append(command.Env, "PATH="+filepath.Dir(r.Runc)+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{"GOGC": "50", "GOMEMLIMIT": "512MiB"} {
		if os.Getenv(name) == "" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.Env = command.Environ() // without the values that are replaced, which execve(2) would keep
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, nil
}

// prepare removes the state of earlier boots and creates the directories.
func (r Runtime) prepare() error {
	if err := cleanState(r.State); err != nil {
		return err
	}
	for _, dir := range []string{r.Root, r.State, r.ShimSocketDir(), filepath.Dir(r.Socket)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// The root user of a pod with a user namespace, which is unprivileged on the host, traverses
	// State to its file system.
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
