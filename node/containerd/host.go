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

// host contains the properties of a host that determine its configuration.
type host struct {
	// platform is the operating system and architecture in OCI notation.
	platform string
	// overlay means that Root's file system supports overlay mounts.
	overlay bool
	// lowersOOMScore means that this process can lower the oom_score_adj of other processes, as the
	// kubelet does for important pods.
	lowersOOMScore bool
}

// inspectHost determines this host's properties. It tries an overlay mount, because support for it
// depends on the kernel and the file system.
func inspectHost(root string) host {
	return host{
		platform:       "linux/" + runtime.GOARCH,
		overlay:        overlayutils.Supported(root) == nil,
		lowersOOMScore: hasCapability("/proc/self/status", unix.CAP_SYS_RESOURCE),
	}
}

// hasCapability reports whether a process has an effective capability. path is the path of the
// process's status file (proc(5)).
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

// Snapshotter returns the snapshotter that containerd's configuration uses for this Root. This is
// overlayfs, or native (copies) if the kernel or the file system does not support overlay mounts.
// It tries a mount below Root.
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
