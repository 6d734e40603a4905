package platform

import (
	"errors"
	"runtime"

	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/supervisor"
)

// cpuWeightFactor is the ratio of the platform's CPU time to the pods' CPU time when both are fully
// busy. The pods' CPU weight is based on the number of CPUs. Pods can use the CPU time that the
// platform does not use.
const cpuWeightFactor = 8

// createCgroups creates the processes' cgroups.
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
