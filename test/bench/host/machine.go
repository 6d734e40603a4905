package host

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Describe returns a description of the machine and its load before the measurements.
func Describe() string {
	var info unix.Sysinfo_t
	memory := "unknown memory"
	if unix.Sysinfo(&info) == nil {
		memory = fmt.Sprintf("%.0f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
	}
	return fmt.Sprintf("%d cores (%s), %s, Linux %s, load average before %s",
		runtime.NumCPU(), processor(), memory, firstWord("/proc/sys/kernel/osrelease"), firstWord("/proc/loadavg"))
}

// processor returns the processor model, or the architecture if the kernel reports no model.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

func firstWord(path string) string {
	data, err := os.ReadFile(path)
	if fields := strings.Fields(string(data)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
