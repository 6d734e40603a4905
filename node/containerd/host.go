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

// host is what the configuration depends on besides Runtime.
type host struct {
	// platform is the operating system and architecture, as OCI writes it.
	platform string
	// overlay: the file system of Root can be the base of overlay mounts.
	overlay bool
	// lowersOOMScore: this process may lower the oom_score_adj of processes, as kubelet wants it for important pods.
	lowersOOMScore bool
}

// inspectHost finds out what this host can do. Overlay support is tried with a mount, as the answer depends on kernel and file system.
func inspectHost(root string) host {
	return host{
		platform:       "linux/" + runtime.GOARCH,
		overlay:        overlayutils.Supported(root) == nil,
		lowersOOMScore: hasCapability("/proc/self/status", unix.CAP_SYS_RESOURCE),
	}
}

// hasCapability reports whether the process whose status file (proc(5)) is at path has the capability in effect.
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

// Snapshotter returns the snapshotter that containerd is configured to use for this Root: overlayfs, or native (copies) where the kernel
// or the file system does not support overlay mounts. It tries a mount below Root.
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
