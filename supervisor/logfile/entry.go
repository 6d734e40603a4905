package logfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// entry is a log line with its time.
type entry struct {
	// time is the line's own time, or the time of the nearest preceding line that contains a time.
	time time.Time
	line string
}

// Selection selects lines from a log.
type Selection struct {
	// Tail is the number of lines to select from the end. A negative number selects all lines.
	Tail int
	// Since excludes lines from before this time, unless it is zero.
	Since time.Time
	// Filter excludes lines that do not match it. Tail counts only the lines that match.
	Filter Filter
}

// entries returns the selected lines of a log with their times. It reads only the first size bytes
// of the log's current file.
func (s Selection) entries(path string, size int64) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		var current time.Time
		for line, err := range s.lines(path, size) {
			if t, ok := timeOf(line, time.Now()); ok {
				current = t
			}
			if err == nil && current.Before(s.Since) {
				continue
			}
			if !yield(entry{current, line}, err) {
				return
			}
		}
	}
}

// lines returns the lines of a log that Tail and Filter select.
func (s Selection) lines(path string, size int64) iter.Seq2[string, error] {
	switch {
	case s.Filter.isZero() && s.Tail < 0:
		return allLines(path, size)
	case s.Filter.isZero():
		return func(yield func(string, error) bool) { yieldAll(LastLines(path, s.Tail), yield) }
	}
	return func(yield func(string, error) bool) {
		var last []string
		matches := s.Filter.matcher()
		for line, err := range allLines(path, size) {
			switch {
			case err == nil && !matches(line):
			case err != nil || s.Tail < 0:
				if !yield(line, err) {
					return
				}
			default:
				last = append(last, line)
				last = last[max(0, len(last)-s.Tail):]
			}
		}
		yieldAll(last, yield)
	}
}

func yieldAll(lines []string, yield func(string, error) bool) {
	for _, line := range lines {
		if !yield(line, nil) {
			return
		}
	}
}

// allLines returns the lines of a log. It reads only the first size bytes of the log's current
// file.
func allLines(path string, size int64) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range slices.Backward(files(path)) {
			limit := size
			if name != path {
				limit = maxFileBytes
			}
			if !readFile(name, limit, yield) {
				return
			}
		}
	}
}

// maxFileBytes is a number of bytes that no log file reaches.
const maxFileBytes = 1 << 62

// readFile yields the lines in the first limit bytes of a file. If the file does not exist, it
// yields no lines. readFile reports whether to continue.
func readFile(path string, limit int64, yield func(string, error) bool) bool {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return yield("", fmt.Errorf("open log: %w", err))
	}
	defer file.Close()
	reader := bufio.NewReader(io.LimitReader(file, limit))
	for {
		line, err := reader.ReadString('\n')
		if line != "" && !yield(strings.TrimSuffix(line, "\n"), nil) {
			return false
		}
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return yield("", fmt.Errorf("read log: %w", err))
		}
	}
}

// timeOf returns the time at the start of a line, in the formats of klog, containerd, etcd and the
// supervisor. klog lines do not contain the year, so timeOf chooses the latest year for which the
// time is at most one day after now.
func timeOf(line string, now time.Time) (time.Time, bool) {
	if quoted, ok := strings.CutPrefix(line, `time="`); ok {
		text, _, _ := strings.Cut(quoted, `"`)
		t, err := time.Parse(time.RFC3339Nano, text)
		return t, err == nil
	}
	if text, _, ok := strings.Cut(line, "\t"); ok {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t, true
		}
	}
	const supervisorLayout, klogLayout = "2006/01/02 15:04:05", "0102 15:04:05.000000"
	if len(line) >= len(supervisorLayout) {
		if t, err := time.ParseInLocation(supervisorLayout, line[:len(supervisorLayout)], time.Local); err == nil {
			return t, true
		}
	}
	if len(line) <= len(klogLayout) || !strings.ContainsRune("IWEF", rune(line[0])) {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(klogLayout, line[1:len(klogLayout)+1], time.Local)
	if err != nil {
		return time.Time{}, false
	}
	t = t.AddDate(now.Year(), 0, 0)
	if t.After(now.AddDate(0, 0, 1)) {
		t = t.AddDate(-1, 0, 0)
	}
	return t, true
}
