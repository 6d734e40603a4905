package flexvolume

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// historyDir is the directory below Registry.KeepDir that records the calls of each driver, for
	// administrators.
	historyDir = ".history"
	// historyBytes is the size, in bytes, at which a history file replaces the previous file (.1).
	// A driver's history therefore has at most about twice this size.
	historyBytes = 128 << 10
)

// PastCall is a driver call in the history.
type PastCall struct {
	Driver    string    `json:"driver"`
	Operation Operation `json:"operation"`
	// Volume is the volume's ID within its driver, and Path is the directory or the name that was
	// passed to the driver. Either can be empty.
	Volume string    `json:"volume,omitempty"`
	Path   string    `json:"path,omitempty"`
	Start  time.Time `json:"start"`
	// Seconds is the duration of a completed call, or how long a running call has been running so
	// far.
	Seconds float64 `json:"seconds"`
	// PID is the process ID of a running call, or 0.
	PID int `json:"pid,omitempty"`
	// Kind and Message describe the failure. Kind is empty for success and for "Not supported".
	// Secrets are redacted.
	Kind    Kind   `json:"kind,omitempty"`
	Message string `json:"message,omitempty"`
}

// Concerns reports whether a call operates on a volume. The volume is given by its ID or by the
// name of its PersistentVolume, which is the last element of the volume's directory.
func (p PastCall) Concerns(volume string) bool {
	return volume != "" && (p.Volume == volume || p.Path == volume || filepath.Base(p.Path) == volume)
}

// releases reports whether an operation releases a volume.
func (op Operation) releases() bool {
	return op == OpUnmount || op == OpUnmountDevice || op == OpDetach
}

// history records the calls of all versions of a driver.
type history struct {
	file string // empty if calls are not recorded
	mu   sync.Mutex
}

func historyFile(keepDir, driver string) string {
	return filepath.Join(keepDir, historyDir, EscapeName(driver)+".jsonl")
}

// add records a completed call. As in recordFailure, the file is not synced and errors are ignored.
func (h *history) add(call PastCall) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	line, err := json.Marshal(call)
	if err != nil || h.file == "" || os.MkdirAll(filepath.Dir(h.file), 0o700) != nil {
		return
	}
	if info, err := os.Stat(h.file); err == nil && info.Size() > historyBytes {
		_ = os.Rename(h.file, h.file+".1") // on failure, the file keeps growing
	}
	file, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	// An interrupted write leaves a record without a trailing newline, so begin with a newline.
	_, _ = file.Write(slices.Concat([]byte("\n"), line))
}

// History returns the calls that the Registry with this KeepDir recorded, for one driver, or for
// all drivers if driver is "". The completed calls precede the running calls. Both groups are
// sorted by start time.
func History(keepDir, driver string) ([]PastCall, error) {
	return historySince(keepDir, driver, time.Time{})
}

// historySince is like History, but skips files that have not been modified since the given time.
func historySince(keepDir, driver string, since time.Time) ([]PastCall, error) {
	pattern := "*.jsonl"
	if driver != "" {
		pattern = filepath.Base(escapeGlob(historyFile("", driver)))
	}
	files, err := filepath.Glob(filepath.Join(escapeGlob(keepDir), historyDir, pattern))
	if err != nil {
		return nil, fmt.Errorf("find FlexVolume driver history: %w", err)
	}
	var calls []PastCall
	for _, file := range files {
		for _, path := range []string{file + ".1", file} {
			if info, err := os.Stat(path); err == nil && info.ModTime().Before(since) {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("read FlexVolume driver history: %w", err)
			}
			calls = append(calls, parseHistory(content)...)
		}
	}
	slices.SortStableFunc(calls, func(a, b PastCall) int { return a.Start.Compare(b.Start) })
	return append(calls, RunningCalls(keepDir, driver)...), nil
}

// parseHistory returns the complete records in a file.
func parseHistory(content []byte) (calls []PastCall) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for lines.Scan() {
		var call PastCall
		if json.Unmarshal(lines.Bytes(), &call) == nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// RunningCalls returns the running calls that the Registry with this KeepDir recorded, sorted by
// start time, for one driver, or for all drivers if driver is "".
func RunningCalls(keepDir, driver string) (calls []PastCall) {
	// Glob does not return an error, because the pattern is valid.
	records, _ := filepath.Glob(filepath.Join(escapeGlob(keepDir), runningDir, "*", "*"))
	for _, record := range records {
		o, ok := orphanOf(filepath.Base(record))
		if !ok || !o.alive() {
			continue
		}
		content, err := os.ReadFile(record)
		var call PastCall
		if err != nil || json.Unmarshal(content, &call) != nil || driver != "" && call.Driver != driver {
			continue
		}
		call.PID, call.Seconds = o.pid, time.Since(call.Start).Seconds()
		calls = append(calls, call)
	}
	slices.SortFunc(calls, func(a, b PastCall) int { return a.Start.Compare(b.Start) })
	return calls
}

const (
	// releaseRetryPeriod exceeds the interval at which the kubelet and the attach-detach controller
	// retry a failed call. Therefore, if a call failed longer ago than this and was not retried,
	// the volume has been released.
	releaseRetryPeriod = 10 * time.Minute
	// stuckPeriod is how long a call that releases a volume can run before it is considered stuck.
	stuckPeriod = time.Minute
)

// FailedReleases returns the calls that failed to release a volume or are stuck, as recorded by the
// Registry with this KeepDir. For each volume path, it considers only the last release call. It
// returns the call if the call failed within releaseRetryPeriod or has been running for at least
// stuckPeriod.
func FailedReleases(keepDir string) ([]PastCall, error) {
	now := time.Now()
	calls, err := historySince(keepDir, "", now.Add(-releaseRetryPeriod))
	if err != nil {
		return nil, err
	}
	last := map[string]PastCall{}
	for _, call := range calls {
		isStuck := call.PID > 0 && call.Seconds >= stuckPeriod.Seconds()
		if !call.Operation.releases() || call.Kind == KindCanceled || call.PID > 0 && !isStuck {
			continue
		}
		last[call.Driver+" "+call.Path] = call
	}
	var failed []PastCall
	for _, key := range slices.Sorted(maps.Keys(last)) {
		call := last[key]
		if call.PID > 0 || call.Kind != "" && now.Sub(call.Start) < releaseRetryPeriod {
			failed = append(failed, call)
		}
	}
	return failed, nil
}

// pathOf returns the call argument that identifies the volume: its directory, or its name for
// detach.
func pathOf(c call) string {
	switch c.op {
	case OpMount, OpMountDevice, OpUnmount, OpUnmountDevice, OpDetach:
		return c.args[0]
	case OpExpandVolume:
		return c.args[1]
	case OpExpandFS:
		return c.args[2]
	}
	return ""
}

// String returns a description of a call, such as "unmount of /var/lib/...".
func (p PastCall) String() string {
	subject := p.Path
	if subject == "" {
		subject = p.Volume
	}
	return strings.TrimSuffix(string(p.Operation)+" of "+subject, " of ")
}
