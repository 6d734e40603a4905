package flexvolume

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// When this process is killed, the drivers that it has called go on. Before anyone calls them again for the same volumes they are ended,
// as a call is that has met its deadline; otherwise two would format or mount one device at a time. So every call is noted, in an empty file
// that is named for the driver's process, until that process has ended. What a driver has left in the background on purpose, such as
// a FUSE daemon, outlives it and is never noted.

// runningDir is where the calls are noted, below Registry.KeepDir and below the identity of the machine's boot.
const runningDir = ".running"

// noteRunning notes a driver's process. forget must be called when it has ended; it does nothing where nothing is noted.
func noteRunning(dir string, pid int) (forget func()) {
	if dir == "" {
		return func() {}
	}
	began, err := startOf(pid)
	if err != nil {
		return func() {} // it has ended
	}
	note := filepath.Join(dir, fmt.Sprintf("%d-%s", pid, began))
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		return func() {} // the call is worth more than the note, and a full disk must not keep volumes from being unmounted
	}
	return func() { _ = os.Remove(note) }
}

// endOrphans ends the drivers that an earlier run of the registry has called and not seen end, and makes the directory for its own notes.
func (r *Registry) endOrphans() error {
	if r.KeepDir == "" {
		return nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fmt.Errorf("read identity of the machine's boot: %w", err)
	}
	dir := filepath.Join(r.KeepDir, runningDir, strings.TrimSpace(string(boot)))
	notes, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read notes of running drivers: %w", err)
	}
	var orphans []orphan
	for _, note := range notes {
		pid, began, _ := strings.Cut(note.Name(), "-")
		if number, err := strconv.Atoi(pid); err == nil && number > 1 {
			orphans = append(orphans, orphan{number, began})
		}
	}
	endAll(orphans)
	// Also the notes of earlier boots.
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("remove notes of running drivers: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory for notes of running drivers: %w", err)
	}
	r.running = dir
	return nil
}

// orphan is a driver's process: its identity, and when it began, because another process may have that identity now.
type orphan struct {
	pid   int
	began string
}

// lives says whether the process has not ended. One that has and was not waited for counts as ended.
func (o orphan) lives() bool {
	began, err := startOf(o.pid)
	return err == nil && began == o.began
}

// endAll ends the process groups of those that live: first with SIGTERM, then with SIGKILL. One that waits in the kernel is left.
func endAll(orphans []orphan) {
	for _, end := range []struct {
		signal syscall.Signal
		grace  time.Duration
	}{{syscall.SIGTERM, killGrace}, {syscall.SIGKILL, reapGrace}} {
		var left []orphan
		for _, o := range orphans {
			if !o.lives() {
				continue
			}
			slog.Warn("end FlexVolume driver that was called before a crash", "pid", o.pid, "signal", end.signal.String())
			_ = syscall.Kill(-o.pid, end.signal)
			left = append(left, o)
		}
		for deadline := time.Now().Add(end.grace); anyLives(left) && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		orphans = left
	}
}

func anyLives(orphans []orphan) bool {
	for _, o := range orphans {
		if o.lives() {
			return true
		}
	}
	return false
}

// startOf is when a process began, in the kernel's ticks since boot (field 22 of /proc/<pid>/stat). A zombie is an error.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field, the program's name in parentheses, may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return string(fields[19]), nil
}
