// Package disk keeps pods from filling the disks to which the platform writes.
//
// The kubelet checks disks every ten seconds and then evicts pods. A pod can fill a disk faster. A
// pod's output can even fill the blocks that the file system reserves for root, because the
// container runtime writes this output. Guard checks four times per second. If a disk is nearly
// full, Guard kills the containers of the pods that write. The kubelet restarts the containers with
// backoff and evicts the pods.
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
	// Guard acts if the free space on a disk is less than 1/minFreeDivisor of the disk and less
	// than maxMinFree bytes. The kubelet evicts pods earlier, at 10% of free space. Guard starts to
	// measure writes at twice its own threshold.
	minFreeDivisor = 25
	maxMinFree     = 2 << 30
	// maxWritten is the maximum number of bytes that a pod may write between two checks while a
	// disk is short of space.
	maxWritten = 1 << 20
)

// Guard protects disks from pods.
type Guard struct {
	// Dirs are directories on the disks that Guard protects.
	Dirs []string
	// PodGroup is the parent cgroup of all pods.
	PodGroup string
	// LogDir contains a directory for each pod's output. The directory's name ends with the pod's
	// UID.
	LogDir string

	// writes maps pod UIDs to the number of bytes that the pod had written at the last check. It is
	// nil unless a disk was nearly short of space at that check.
	writes map[string]uint64
}

// Name returns the component's name.
func (g *Guard) Name() string { return "disk-guard" }

// Run checks the disks until ctx is done.
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

// check measures the pods' writes while a disk is nearly short of space, and kills the writers when
// the disk is short of space.
func (g *Guard) check() {
	var nearlyShort, short bool
	for _, dir := range g.Dirs {
		free, minFree, err := space(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // the directory does not exist before the first start
		}
		if err != nil {
			slog.Warn("cannot watch disk", "path", dir, "error", err)
			continue
		}
		nearlyShort, short = nearlyShort || free < 2*minFree, short || free < minFree
	}
	if !nearlyShort {
		g.writes = nil
		return
	}
	previous := g.writes
	g.writes = map[string]uint64{}
	for uid, group := range g.pods() {
		pids := cgroup.Processes(group)
		g.writes[uid] = writtenBy(pids) + g.printedBy(uid)
		last, ok := previous[uid]
		if !short || !ok || g.writes[uid] < last+maxWritten {
			continue
		}
		slog.Warn("killing the containers of a pod that fills the platform's disk", "uid", uid, "written", g.writes[uid]-last, "within", checkInterval)
		for _, pid := range pids { // includes each container's PID 1, whose exit ends the container
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// space returns the number of free bytes on a disk that are available to users other than root.
// minFree is the number of free bytes below which Guard acts.
func space(dir string) (free, minFree uint64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, 0, fmt.Errorf("read free space of %q: %w", dir, err)
	}
	size := uint64(disk.Bsize)
	return disk.Bavail * size, min(disk.Blocks*size/minFreeDivisor, maxMinFree), nil
}

// pods maps pod UIDs to the pods' cgroups.
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

// writtenBy returns the total number of bytes that processes and their reaped children have written
// to disks.
func writtenBy(pids []int) (bytes uint64) {
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			continue // the process has ended
		}
		for line := range strings.Lines(string(content)) {
			if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
				count, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
				bytes += count
			}
		}
	}
	return bytes
}

// printedBy returns the total size, in bytes, of the output of a pod's containers. The container
// runtime writes this output.
func (g *Guard) printedBy(uid string) (bytes uint64) {
	files, _ := filepath.Glob(filepath.Join(g.LogDir, "*_"+uid, "*", "*.log"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += uint64(info.Size())
		}
	}
	return bytes
}
