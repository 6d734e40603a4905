package logfile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// pollInterval is the interval in which Print reads new lines.
const pollInterval = 200 * time.Millisecond

// Print writes the last count lines of each log; paths are by name of process. If there are
// several, the name precedes each line. With follow, Print also writes new lines until ctx ends.
func Print(ctx context.Context, out io.Writer, paths map[string]string, count int, follow bool) error {
	names := slices.Sorted(maps.Keys(paths))
	print := func(name, line string) {
		if len(names) > 1 {
			fmt.Fprintf(out, "%-13s | ", name)
		}
		fmt.Fprintln(out, line)
	}
	offsets := map[string]int64{}
	for _, name := range names {
		if info, err := os.Stat(paths[name]); err == nil {
			offsets[name] = info.Size()
		}
		for _, line := range LastLines(paths[name], count) {
			print(name, line)
		}
	}
	if !follow {
		return nil
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
			offset, err := readLines(paths[name], offsets[name], func(line string) { print(name, line) })
			if err != nil {
				return err
			}
			offsets[name] = offset
		}
	}
}

// readLines passes the complete lines from an offset on to emit, and returns the offset after them.
// It reads a file that was truncated from its start.
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
