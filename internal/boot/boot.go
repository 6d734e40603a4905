// Package boot identifies the current boot of the host, so that processes recognize files from an
// earlier boot.
package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ID identifies the lifetime of the current process tree. It consists of the kernel's boot ID and
// the start time of process 1, which distinguishes restarts of a container. proc is the procfs
// mount point.
func ID(proc string) (string, error) {
	kernel, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read boot ID: %w", err)
	}
	stat, err := os.ReadFile(filepath.Join(proc, "1/stat"))
	if err != nil {
		return "", fmt.Errorf("read boot ID: %w", err)
	}
	// The second field is a name in parentheses, which can contain spaces. The start time is the
	// 22nd field.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndex(string(stat), ")")+1:]), " ")
	fields := strings.Fields(rest)
	const startTime = 22 - 3
	if len(fields) <= startTime {
		return "", fmt.Errorf("parse boot ID: unknown format of %q", filepath.Join(proc, "1/stat"))
	}
	return strings.TrimSpace(string(kernel)) + " " + fields[startTime], nil
}
