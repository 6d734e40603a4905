package preflight

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func checkMemory(_ context.Context, want Requirements, machine Machine) []Problem {
	const mega = 1_000_000
	available, err := machine.availableMemory()
	if err != nil {
		return []Problem{{Error, "memory", err.Error(), "mount -t proc proc /proc"}}
	}
	if available >= want.Memory {
		return nil
	}
	return []Problem{{Error, "memory", fmt.Sprintf("%d MB are available, %d MB are needed", available/mega, want.Memory/mega),
		"stop unneeded processes; to list the largest, run: ps -eo rss,pid,args --sort -rss | head\ngive the machine more memory"}}
}

// availableMemory returns the amount of memory that programs can still allocate, in bytes.
func (m Machine) availableMemory() (uint64, error) {
	file, err := os.Open(filepath.Join(m.Root, "proc/meminfo"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kilobytes, err := strconv.ParseUint(fields[1], 10, 54)
		if err != nil {
			return 0, fmt.Errorf("read available memory: %w", err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("read available memory: %s has no MemAvailable", file.Name())
}

// checkClock reports a clock that has not been set, because every certificate would be invalid with
// the wrong time.
func checkClock(_ context.Context, _ Requirements, machine Machine) []Problem {
	if machine.Now.Year() >= 2025 {
		return nil
	}
	return []Problem{{Error, "clock", "shows the year " + strconv.Itoa(machine.Now.Year()) + "; certificates would not be valid",
		"timedatectl set-ntp true\ndate --set '<date and time>'"}}
}

func checkNodeName(_ context.Context, want Requirements, _ Machine) []Problem {
	faults := validation.IsDNS1123Subdomain(want.NodeName)
	if len(faults) == 0 {
		return nil
	}
	return []Problem{{Error, "node name", fmt.Sprintf("%q is not a DNS name of lower case letters, digits, '-' and '.'", want.NodeName),
		"set nodeName in node-config.yaml\nhostnamectl set-hostname <name>"}}
}

// checkSwap warns about swap, because swapped pods are slow without a visible cause.
func checkSwap(_ context.Context, _ Requirements, machine Machine) []Problem {
	content, err := os.ReadFile(filepath.Join(machine.Root, "proc/swaps"))
	if err != nil || strings.Count(strings.TrimSpace(string(content)), "\n") == 0 {
		return nil
	}
	return []Problem{{Warning, "swap", "is enabled; memory limits of pods do not include it, and pods can become slow", "swapoff --all"}}
}
