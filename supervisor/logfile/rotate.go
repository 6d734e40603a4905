package logfile

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

const (
	maxBytes       = 64 << 20
	rotateInterval = time.Minute
)

// RotateAll rotates log files that exceed 64 MiB, until ctx is done.
func RotateAll(ctx context.Context, paths []string) {
	ticker := time.NewTicker(rotateInterval)
	defer ticker.Stop()
	for {
		for _, path := range paths {
			if err := rotate(path, maxBytes); err != nil {
				slog.Warn("cannot rotate log", "path", path, "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// rotate copies a file that is larger than limit bytes to <path>.1 and truncates the file. The
// process that appends to the file can keep it open.
func rotate(path string, limit int64) error {
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
		return fmt.Errorf("truncate log: %w", err)
	}
	return nil
}
