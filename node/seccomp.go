package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// BuildProfile is the name of the seccomp profile for builds (seccompProfile.localhostProfile). The
// profile exists on every node. It is based on the default profile for containers with SYS_ADMIN in
// their own user namespace. It omits system calls that builds do not need, and adds pivot_root,
// which is required to start nested containers.
const BuildProfile = "slipway/build.json"

// writeProfiles writes the seccomp profiles to the directory where the kubelet looks for them.
func writeProfiles(root string) error {
	path := filepath.Join(root, "seccomp", BuildProfile)
	content, err := json.Marshal(buildProfile())
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(path, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write system call filter: %w", err)
	}
	return nil
}

// buildProfile returns the profile for builds. It passes the capabilities of builds to containerd,
// because containerd's default profile depends on the container's capabilities.
func buildProfile() *specs.LinuxSeccomp {
	capabilities := []string{"CAP_SYS_ADMIN", "CAP_SYS_CHROOT"}
	profile := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}}})
	unneeded := []string{"bpf", "fanotify_init", "lookup_dcookie", "perf_event_open", "quotactl", "quotactl_fd", "syslog"}
	for i := range profile.Syscalls {
		if rule := &profile.Syscalls[i]; rule.Action == specs.ActAllow {
			rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(unneeded, name) })
		}
	}
	enosys := uint(unix.ENOSYS) // runc supports kernels that return ENOSYS for keyctl
	profile.Syscalls = append(profile.Syscalls,
		specs.LinuxSyscall{Names: []string{"pivot_root"}, Action: specs.ActAllow},
		specs.LinuxSyscall{Names: []string{"keyctl"}, Action: specs.ActErrno, ErrnoRet: &enosys},
	)
	return profile
}
