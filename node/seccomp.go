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

// BuildProfile is the name of a filter of system calls (seccompProfile.localhostProfile) that every node has: it is the usual one of containers with SYS_ADMIN
// in namespaces of their own, less what is of no use there, and with pivot_root, which starts a container in a container.
const BuildProfile = "slipway/build.json"

// writeProfiles writes the filters of the node to where kubelet finds them, below its directory.
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
		return fmt.Errorf("write filter of system calls: %w", err)
	}
	return nil
}

// buildProfile is that filter. containerd's depends on what a container may do.
func buildProfile() *specs.LinuxSeccomp {
	may := []string{"CAP_SYS_ADMIN", "CAP_SYS_CHROOT"}
	profile := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: may}}})
	useless := []string{"bpf", "fanotify_init", "lookup_dcookie", "perf_event_open", "quotactl", "quotactl_fd", "syslog"}
	for i := range profile.Syscalls {
		if rule := &profile.Syscalls[i]; rule.Action == specs.ActAllow {
			rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(useless, name) })
		}
	}
	unknown := uint(unix.ENOSYS) // runc does without what the kernel does not have
	profile.Syscalls = append(profile.Syscalls,
		specs.LinuxSyscall{Names: []string{"pivot_root"}, Action: specs.ActAllow},
		specs.LinuxSyscall{Names: []string{"keyctl"}, Action: specs.ActErrno, ErrnoRet: &unknown},
	)
	return profile
}
