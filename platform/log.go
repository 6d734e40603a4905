package platform

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/slipway-platform/slipway/internal/redact"
)

// A process writes its log file directly, so its last words are there whatever happens to the
// supervisor. The supervisor keeps the file from growing: beyond maxLog it is copied to <file>.1 and
// cut, which the process, appending, does not notice.
const (
	maxLog         = 64 << 20
	logCheckPeriod = time.Minute
)

// setLogOutput sets the output of this process's logs, those of upstream libraries included, which
// use klog. Every line passes redaction. It must be called before any other goroutine logs.
func setLogOutput(w io.Writer) {
	w = redact.Writer(w)
	log.SetOutput(w)
	// klog writes to stderr by itself, unless it has a logger.
	klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w))), klog.ContextualLogger(true))
}

// openLog opens a log file for appending.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}

// keepLogsSmall cuts log files that have grown too large, until ctx ends.
func keepLogsSmall(ctx context.Context, paths []string) {
	tick := time.NewTicker(logCheckPeriod)
	defer tick.Stop()
	for {
		for _, path := range paths {
			if err := cutLog(path, maxLog); err != nil {
				slog.Warn("cut log", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// cutLog moves the content of a file larger than limit bytes to <path>.1.
func cutLog(path string, limit int64) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= limit {
		return nil
	}
	source, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer source.Close()
	target, err := os.OpenFile(path+".1", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open old log: %w", err)
	}
	_, err = io.Copy(target, source)
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("copy log %q: %w", path, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		return fmt.Errorf("cut log: %w", err)
	}
	return nil
}

// lastLines returns up to count lines from the end of a file; a file that cannot be read has none.
func lastLines(path string, count int) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	const tail = 256 << 10
	if info, err := file.Stat(); err == nil && info.Size() > tail {
		if _, err := file.Seek(-tail, io.SeekEnd); err != nil {
			return nil
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return lines[max(0, len(lines)-count):]
}

// printLogs writes the last count lines of each log, with the process's name in front where there are
// several, and follows them until ctx ends if asked to.
func printLogs(ctx context.Context, w io.Writer, logs map[string]string, count int, follow bool) error {
	var names []string
	for name := range logs {
		names = append(names, name)
	}
	slices.Sort(names)
	print := func(name, line string) {
		if len(names) > 1 {
			fmt.Fprintf(w, "%-13s | ", name)
		}
		fmt.Fprintln(w, line)
	}
	offsets := map[string]int64{}
	for _, name := range names {
		if info, err := os.Stat(logs[name]); err == nil {
			offsets[name] = info.Size()
		}
		for _, line := range lastLines(logs[name], count) {
			print(name, line)
		}
	}
	if !follow {
		return nil
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, name := range names {
			read, err := linesFrom(logs[name], offsets[name], func(line string) { print(name, line) })
			if err != nil {
				return err
			}
			offsets[name] = read
		}
	}
}

// linesFrom hands the complete lines from an offset on to emit, and returns the offset behind them. A
// file that has been cut is read from its beginning.
func linesFrom(path string, offset int64, emit func(string)) (int64, error) {
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
