package containerd

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/plugins/snapshots/overlay/overlayutils"
	"golang.org/x/sys/unix"
)

// host contains the properties of a host that the configuration depends on.
type host struct {
	// platform is the operating system and architecture in OCI's form.
	platform string
	// overlay means that the file system of Root supports overlay mounts.
	overlay bool
	// lowersOOMScore means that this process can lower the oom_score_adj of processes, which the
	// kubelet does for important pods.
	lowersOOMScore bool
}

// inspectHost determines the properties of this host. It tries an overlay mount, because support
// depends on the kernel and the file system.
func inspectHost(root string) host {
	return host{
		platform:       "linux/" + runtime.GOARCH,
		overlay:        overlayutils.Supported(root) == nil,
		lowersOOMScore: hasCapability("/proc/self/status", unix.CAP_SYS_RESOURCE),
	}
}

// hasCapability reports whether the process with the status file (proc(5)) at path has an effective
// capability.
func hasCapability(path string, capability int) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		return err == nil && set&(1<<capability) != 0
	}
	return false
}

// Snapshotter returns the snapshotter in containerd's configuration for this Root: overlayfs, or
// native (copies) if the kernel or the file system does not support overlay mounts. It tries a
// mount below Root.
func (r Runtime) Snapshotter() (string, error) {
	if err := os.MkdirAll(r.Root, 0o700); err != nil {
		return "", fmt.Errorf("find snapshotter: %w", err)
	}
	return inspectHost(r.Root).snapshotter(), nil
}

func (h host) snapshotter() string {
	if h.overlay {
		return "overlayfs"
	}
	return "native"
}
