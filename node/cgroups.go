package node

import (
	"errors"
	"runtime"

	"github.com/slipway-platform/slipway/internal/cgroup"
)

// cpuWeightFactor is the ratio of the platform's CPU time to the pods' CPU time when both are fully
// busy. The pods' CPU weight is based on the number of CPUs. Pods can use the CPU time that the
// platform does not use.
const cpuWeightFactor = 8

// CreateCgroups creates the cgroups of the platform's processes. platform is the parent of these
// cgroups and a child of root, which also contains the cgroup of the pods. CreateCgroups protects
// the reserved memory from the pods.
func CreateCgroups(root, platform string, processes []string, reserve Reserve) error {
	for _, process := range processes {
		if err := cgroup.Create(process); err != nil {
			return err
		}
	}
	return errors.Join(
		cgroup.SetShares(platform, cpuWeightFactor*1024*uint64(runtime.NumCPU())),
		cgroup.ProtectMemory(root, reserve.Memory),
		cgroup.ProtectMemory(platform, reserve.Memory),
	)
}
