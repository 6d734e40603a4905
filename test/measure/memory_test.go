package measure

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

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
func memoryOf(pid int) (c consumption) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue // the first line is an address range
		}
		kibibytes, _ := strconv.ParseInt(words[1], 10, 64) // the kernel writes only digits
		switch words[0] {
		case "Pss:":
			c.proportional = kibibytes << 10
		case "Anonymous:":
			c.anonymous = kibibytes << 10
		}
	}
	return c
}
