// Package disk keeps pods from filling the disks that the platform writes to.
//
// Kubelet looks at disks every ten seconds and evicts pods then. A pod can fill a disk sooner, and
// its output can even take what the file system keeps for root, because the container runtime
// writes it. Guard looks four times a second. Where pods are about to win, it kills the containers
// of those that write; kubelet restarts them with a growing delay and evicts the pods.
package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/cgroup"
)

const (
	checkInterval = 250 * time.Millisecond
	// Guard acts when less than the least part of a disk is free, at most maxLeast bytes. Kubelet
	// evicts at 10% already. Guard begins to measure what pods write at twice as much.
	leastDivisor = 25
	maxLeast     = 2 << 30
	// maxWritten is what a pod may write between two checks while a disk is short, in bytes.
	maxWritten = 1 << 20
)

// Guard protects disks from pods.
type Guard struct {
	// Dirs are directories on the disks to protect.
	Dirs []string
	// PodGroup is the control group below which all pods are.
	PodGroup string
	// LogDir has a directory for the output of each pod, whose name ends with the pod's UID.
	LogDir string

	// written is how many bytes pods had written at the last check, by UID; nil unless a disk was
	// short then.
	written map[string]uint64
}

// Name is the part's name.
func (g *Guard) Name() string { return "disk-guard" }

// Run checks the disks until ctx ends.
func (g *Guard) Run(ctx context.Context, ready func()) error {
	ready()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.check()
		}
	}
}

// check measures what pods write while a disk is nearly short, and kills the writers when it is
// short.
func (g *Guard) check() {
	var nearlyShort, short bool
	for _, dir := range g.Dirs {
		free, least, err := space(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // at the first start
		}
		if err != nil {
			slog.Warn("disk is not watched", "error", err)
			continue
		}
		nearlyShort, short = nearlyShort || free < 2*least, short || free < least
	}
	if !nearlyShort {
		g.written = nil
		return
	}
	before := g.written
	g.written = map[string]uint64{}
	for uid, group := range g.pods() {
		pids := cgroup.Processes(group)
		g.written[uid] = writtenBy(pids) + g.printedBy(uid)
		last, measured := before[uid]
		if !short || !measured || g.written[uid] < last+maxWritten {
			continue
		}
		slog.Warn("pod fills the disk of the platform; its containers are killed", "uid", uid, "written", g.written[uid]-last, "within", checkInterval)
		for _, pid := range pids { // among them the first process of each container, with which all others end
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// space returns how many bytes of a disk users other than root can still write, and how many that
// should be at least.
func space(dir string) (free, least uint64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, 0, fmt.Errorf("read free space of %q: %w", dir, err)
	}
	size := uint64(disk.Bsize)
	return disk.Bavail * size, min(disk.Blocks*size/leastDivisor, maxLeast), nil
}

// pods returns the control groups of pods by UID.
func (g *Guard) pods() map[string]string {
	groups := map[string]string{}
	for _, class := range []string{"", "burstable", "besteffort"} {
		parent := filepath.Join(g.PodGroup, class)
		for _, name := range cgroup.Children(parent) {
			if uid, ok := strings.CutPrefix(name, "pod"); ok {
				groups[uid] = filepath.Join(parent, name)
			}
		}
	}
	return groups
}

// writtenBy sums what processes have written to disks, with the children that they waited for.
func writtenBy(pids []int) (bytes uint64) {
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(content)) {
			if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
				written, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
				bytes += written
			}
		}
	}
	return bytes
}

// printedBy sums the output of a pod's containers, which the container runtime writes for them.
func (g *Guard) printedBy(uid string) (bytes uint64) {
	files, _ := filepath.Glob(filepath.Join(g.LogDir, "*_"+uid, "*", "*.log"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += uint64(info.Size())
		}
	}
	return bytes
}
