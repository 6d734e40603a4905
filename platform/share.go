package platform

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strconv"

	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/node"
)

// What the processes of a host have of the machine when pods want all of it.

// platformGroup holds a control group for each process, beside kubelet's group of all pods.
func (h *host) platformGroup() string { return path.Join(h.Node.Slipway.CgroupRoot, "platform") }

func (h *host) group(process string) string { return path.Join(h.platformGroup(), process) }

// platformShares is how much more processor time the platform gets than pods when both want all of
// it. Pods have the shares of the processors that are there; what the platform does not use is
// theirs.
const platformShares = 8

// createGroups makes the control groups of processes.
func (h *host) createGroups(processes []process) error {
	for _, p := range processes {
		if err := cgroup.Create(p.group); err != nil {
			return err
		}
	}
	reserve, err := node.ReserveOf(h.Node.VolumeDirectory)
	if err != nil {
		return err
	}
	return errors.Join(
		cgroup.SetShares(h.platformGroup(), platformShares*1024*uint64(runtime.NumCPU())),
		cgroup.ProtectMemory(h.Node.Slipway.CgroupRoot, reserve.Memory),
		cgroup.ProtectMemory(h.platformGroup(), reserve.Memory),
	)
}

// platformOOMScore makes the kernel end any container before a process of the platform, as
// kubelet's score does.
const platformOOMScore = -999

// protectFromOOM sets the score of this process, which those that it starts inherit; containers
// have their own. Lowering it needs CAP_SYS_RESOURCE. Without that, containers still end first,
// because theirs are higher.
func protectFromOOM() {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(platformOOMScore)), 0o644)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		slog.Warn("the kernel may end this process when memory is short", "error", err)
	}
}
