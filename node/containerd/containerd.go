// Package containerd configures containerd, the host's container runtime, and starts it as a child
// process of slipway.
//
// containerd writes only to its Runtime's directories, so it neither conflicts with another
// containerd on the machine nor leaves files elsewhere. Root contains images and snapshots. State
// contains everything that belongs to the current boot: sockets, the state of running containers,
// and network namespaces. Its configuration file is generated on each start from Runtime's fields.
// Do not edit the file: each supported setting is a field.
//
// Containers and their shims outlive containerd: a new containerd process finds them in State and
// continues to manage them.
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

// stopTimeout is the maximum time that containerd may take to exit after SIGTERM. It is short
// because containerd only has to close its database: containers keep running without it.
const stopTimeout = 10 * time.Second

// Runtime is a host's containerd. All paths are absolute.
type Runtime struct {
	// Program, Shim and Runc are the paths of the programs to run. See internal/payload.
	Program, Shim, Runc string
	// Root contains images, snapshots and containers. Its content must survive a reboot.
	Root string
	// State contains the state of the current boot. It must not be used for anything else, because
	// it is emptied after a reboot.
	State string
	// Socket is the Unix socket of containerd and its CRI plugin. Only root can connect to it.
	Socket string
	// CNIConfDir contains the pods' network configuration. CNIBinDirs contain the CNI plugins.
	CNIConfDir string
	CNIBinDirs []string
	// RegistryConfigDir contains a directory with a hosts.toml file for each registry that has
	// mirrors or settings. See package image.
	RegistryConfigDir string
	// SandboxImage is the pod sandbox image. It must be loaded before the first pod starts.
	SandboxImage string
	// LogLevel is one of debug, info, warn and error. If it is empty, warn is used.
	LogLevel string
}

// Name returns the component's name.
func (r Runtime) Name() string { return "containerd" }

// Command prepares the directories, writes the configuration, and returns containerd's command,
// ready to start. The caller sets the command's output. When ctx is done, the process receives
// SIGTERM, and SIGKILL after 10 seconds. Its containers continue to run. The process has its own
// process group, so a keyboard interrupt reaches neither the process nor its shims.
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
	// Like Slipway's processes, containerd uses a little more CPU time to save memory. Above
	// GOMEMLIMIT, it returns the memory that it used for unpacking layers. Values set by an
	// administrator take precedence.
	command.Env = os.Environ()
	// The shim looks for runc in PATH when containerd requests runc's features, which happens for
	// each pod.
	command.Env = append(command.Env, "PATH="+filepath.Dir(r.Runc)+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{"GOGC": "50", "GOMEMLIMIT": "512MiB"} {
		if os.Getenv(name) == "" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.Env = command.Environ() // drops replaced values, which execve(2) would keep
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, nil
}

// prepare removes the state left by earlier boots and creates the directories.
func (r Runtime) prepare() error {
	if err := cleanState(r.State); err != nil {
		return err
	}
	for _, dir := range []string{r.Root, r.State, r.ShimSocketDir(), filepath.Dir(r.Socket)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// In a pod with a user namespace, root is unprivileged on the host and must be able to traverse
	// State to reach its file system.
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
