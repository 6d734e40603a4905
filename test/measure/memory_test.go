package measure

import (
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/slipway-platform/slipway/test/kit"
)

// consumption is memory in bytes: the proportional set size, and the anonymous memory in it.
type consumption struct{ proportional, anonymous int64 }

// memory returns the memory of a host's processes except the pods' processes.
func memory(t *testing.T, host *kit.Cluster) (total consumption) {
	t.Helper()
	processes, err := host.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		if slices.Contains([]string{"pause", "containerd-shim-runc-v2", "runc", "sleep"}, process.Program()) {
			continue
		}
		c := memoryOf(process.PID)
		total.proportional += c.proportional
		total.anonymous += c.anonymous
	}
	return total
}

// memoryOf returns a process's memory, or zero if the process has exited.
func memoryOf(pid int) consumption {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return consumption{}
	}
	rollup, err := proc.ProcSMapsRollup()
	if err != nil {
		return consumption{}
	}
	return consumption{int64(rollup.Pss), int64(rollup.Anonymous)}
}
