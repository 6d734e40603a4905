package flexvolume

import (
	"bytes"
	"encoding/json"
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

// If this process is killed, the drivers that it called keep running. Because two concurrent
// drivers could format or mount the same device, the next process kills these drivers. It does so
// in the same way as it kills a call that exceeds its deadline. For this purpose, each call is
// recorded in a file that is named after the driver's process, until the process exits. The file
// contains the PastCall, for administrators. A process that a driver intentionally leaves in the
// background, such as a FUSE daemon, outlives the record and is not killed.

// runningDir is the directory that contains the records, below Registry.KeepDir. It has one
// subdirectory, which is named after the boot ID.
const runningDir = ".running"

// recordCall records a driver's process. The caller must call forget when the process has exited.
func recordCall(dir string, pid int, past PastCall) (forget func()) {
	if dir == "" {
		return func() {}
	}
	startTime, err := processStartTime(pid)
	if err != nil {
		return func() {} // the process has ended
	}
	record := filepath.Join(dir, fmt.Sprintf("%d-%s", pid, startTime))
	content, err := json.Marshal(past)
	if err != nil {
		content = nil
	}
	_ = os.WriteFile(record, content, 0o600) // a full disk must not block unmounting
	return func() { _ = os.Remove(record) }
}

// killOrphans kills the drivers that an earlier process called and that are still running. It then
// creates the directory for this process's records.
func (r *Registry) killOrphans() error {
	if r.KeepDir == "" {
		return nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fmt.Errorf("read boot ID: %w", err)
	}
	dir := filepath.Join(r.KeepDir, runningDir, strings.TrimSpace(string(boot)))
	records, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read running driver records: %w", err)
	}
	var orphans []orphan
	for _, record := range records {
		if o, ok := orphanOf(record.Name()); ok {
			orphans = append(orphans, o)
		}
	}
	killAll(orphans)
	// Also remove the records of earlier boots.
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("remove running driver records: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory for running driver records: %w", err)
	}
	r.runningCallsDir = dir
	return nil
}

// orphan is a driver's process. The start time distinguishes it from a later process that has the
// same ID.
type orphan struct {
	pid       int
	startTime string
}

// orphanOf parses a record's name.
func orphanOf(name string) (orphan, bool) {
	pid, startTime, _ := strings.Cut(name, "-")
	number, err := strconv.Atoi(pid)
	return orphan{number, startTime}, err == nil && number > 1
}

// alive reports whether the process is running. It returns false for a zombie.
func (o orphan) alive() bool {
	startTime, err := processStartTime(o.pid)
	return err == nil && startTime == o.startTime
}

// killAll sends SIGTERM, then SIGKILL, to the process groups of the orphans that are alive. It does
// not wait for a process that is blocked in a system call.
func killAll(orphans []orphan) {
	for _, step := range []struct {
		signal      syscall.Signal
		gracePeriod time.Duration
	}{{syscall.SIGTERM, termTimeout}, {syscall.SIGKILL, killTimeout}} {
		var alive []orphan
		for _, o := range orphans {
			if !o.alive() {
				continue
			}
			slog.Warn("killing FlexVolume driver that a crashed process started", "pid", o.pid, "signal", step.signal.String())
			_ = syscall.Kill(-o.pid, step.signal)
			alive = append(alive, o)
		}
		for deadline := time.Now().Add(step.gracePeriod); anyAlive(alive) && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		orphans = alive
	}
}

func anyAlive(orphans []orphan) bool {
	for _, o := range orphans {
		if o.alive() {
			return true
		}
	}
	return false
}

// processStartTime returns a process's start time, in clock ticks since boot (field 22 of
// /proc/<pid>/stat). It returns an error for a zombie.
func processStartTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses. It can contain any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return string(fields[19]), nil
}
