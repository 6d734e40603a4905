package logfile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// pollInterval is the interval at which Print reads new lines.
const pollInterval = 200 * time.Millisecond

// Print writes the selected lines of logs. paths maps process names to log files. The lines of
// several logs are sorted by time, and each line is preceded by the process name. If follow is set,
// Print also writes new lines until ctx is done.
func Print(ctx context.Context, out io.Writer, paths map[string]string, selection Selection, follow bool) error {
	names := slices.Sorted(maps.Keys(paths))
	print := func(name, line string) {
		if len(names) > 1 {
			fmt.Fprintf(out, "%-13s | ", name)
		}
		fmt.Fprintln(out, line)
	}
	offsets := map[string]int64{}
	matchers := map[string]func(string) bool{}
	var logs []log
	for _, name := range names {
		matchers[name] = selection.Filter.matcher()
		if info, err := os.Stat(paths[name]); err == nil {
			offsets[name] = info.Size()
		}
		next, stop := iter.Pull2(selection.entries(paths[name], offsets[name]))
		defer stop()
		logs = append(logs, log{name: name, next: next})
	}
	if err := merge(logs, print); err != nil || !follow {
		return err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, name := range names {
			offset, err := readLines(paths[name], offsets[name], func(line string) {
				if matchers[name](line) {
					print(name, line)
				}
			})
			if err != nil {
				return err
			}
			offsets[name] = offset
		}
	}
}

// log is the state of a log that merge reads.
type log struct {
	name  string
	next  func() (entry, error, bool)
	entry entry
}

// merge calls print for the lines of logs, sorted by time.
func merge(logs []log, print func(name, line string)) error {
	var pending []*log
	for i := range logs {
		pending = append(pending, &logs[i])
	}
	advance := func(l *log) error {
		entry, err, ok := l.next()
		if !ok {
			pending = slices.DeleteFunc(pending, func(other *log) bool { return other == l })
		}
		l.entry = entry
		return err
	}
	for _, l := range slices.Clone(pending) {
		if err := advance(l); err != nil {
			return err
		}
	}
	for len(pending) > 0 {
		first := slices.MinFunc(pending, func(a, b *log) int { return a.entry.time.Compare(b.entry.time) })
		print(first.name, first.entry.line)
		if err := advance(first); err != nil {
			return err
		}
	}
	return nil
}

// readLines calls emit for the complete lines after an offset, and returns the offset after these
// lines. If a file was truncated, readLines reads it from the start.
func readLines(path string, offset int64, emit func(string)) (int64, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return offset, fmt.Errorf("open log: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() < offset {
		offset = 0
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return offset, fmt.Errorf("read log: %w", err)
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return offset, nil
		}
		offset += int64(len(line))
		emit(strings.TrimSuffix(line, "\n"))
	}
}
