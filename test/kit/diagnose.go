package kit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// lastLogLines is the number of lines from the end of each log that a failed test prints.
const lastLogLines = 40

// diagnose prints a cluster's status, pods, events and logs after a failure.
func (c *Cluster) diagnose(t testing.TB) {
	t.Helper()
	if status, err := c.slipway("status"); err == nil {
		t.Logf("slipway status: exit code %d\n%s%s", status.Code, status.Stdout, status.Stderr)
	}
	if c.Client != nil {
		for _, args := range [][]string{
			{"get", "pods", "--all-namespaces", "--output", "wide"},
			{"get", "events", "--sort-by", ".lastTimestamp"},
			{"describe", "pods"},
		} {
			output, err := c.oc("", append(args, "--request-timeout", "10s")...)
			if err != nil {
				t.Log(err)
				break // further commands would also fail
			}
			t.Logf("oc %s\n%s", strings.Join(args, " "), output)
		}
	}
	logs, _ := filepath.Glob(c.Path("log", "*.log")) // the pattern is valid
	for _, path := range logs {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Log(err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		t.Logf("last lines of %s\n%s", path, strings.Join(lines[max(0, len(lines)-lastLogLines):], "\n"))
	}
	t.Log(diskUse(c.DataDir))
}

func diskUse(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Sprintf("disk of %s: %v", dir, err)
	}
	megabytes := func(blocks uint64) uint64 { return blocks * uint64(fs.Bsize) >> 20 }
	return fmt.Sprintf("disk of %s: %d MB free of %d MB, %d inodes free of %d", dir, megabytes(fs.Bavail), megabytes(fs.Blocks), fs.Ffree, fs.Files)
}
