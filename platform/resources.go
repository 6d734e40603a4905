package platform

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strconv"

	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/supervisor"
)

// cpuWeightFactor is the ratio of processor time of the platform to that of pods if both want all
// of it. The weight of pods is that of all processors. Pods can use what the platform does not.
const cpuWeightFactor = 8

// createCgroups creates the cgroups of processes.
func (h *Host) createCgroups(processes []supervisor.Process) error {
	for _, p := range processes {
		if err := cgroup.Create(p.Cgroup); err != nil {
			return err
		}
	}
	reserve, err := node.ReserveOf(h.Node.VolumeDirectory)
	if err != nil {
		return err
	}
	return errors.Join(
		cgroup.SetShares(h.platformCgroup(), cpuWeightFactor*1024*uint64(runtime.NumCPU())),
		cgroup.ProtectMemory(h.Node.Slipway.CgroupRoot, reserve.Memory),
		cgroup.ProtectMemory(h.platformCgroup(), reserve.Memory),
	)
}

// oomScore is the kubelet's score: the kernel kills any container before a process of the platform.
const oomScore = -999

// protectFromOOM sets the score of this process, which its child processes inherit. Containers have
// other scores. Lowering the score needs CAP_SYS_RESOURCE. Without it, the kernel still kills
// containers first, because their scores are higher.
func protectFromOOM() {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		slog.Warn("the kernel can kill this process when memory is short", "error", err)
	}
}
