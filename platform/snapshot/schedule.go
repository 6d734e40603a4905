package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Schedule is the component that periodically saves a snapshot. Each master saves its own member's
// database. Therefore, the snapshots survive the loss of any other master and require no shared
// directory.
type Schedule struct {
	// Source provides the database.
	Source Source
	// Dir is the directory for the snapshots. It is created with mode 0700.
	Dir string
	// Interval is the interval between snapshots. A restart does not change when the next snapshot
	// is due.
	Interval time.Duration
	// Keep is the number of snapshots to keep, at least 1.
	Keep int
	// Copies is a second storage location for the snapshots, or nil.
	Copies *Copies

	note func(string)
}

const (
	// firstDelay is the maximum delay before the first snapshot.
	firstDelay = 5 * time.Minute
	// retryInterval is the maximum delay before a failed attempt is retried.
	retryInterval = 5 * time.Minute
	// saveTimeout is the maximum time to copy a database.
	saveTimeout = 10 * time.Minute
)

// Name returns the component's name.
func (*Schedule) Name() string { return "etcd-snapshots" }

// Notes sets the function that is called with a message while no snapshot can be saved.
func (s *Schedule) Notes(note func(string)) { s.note = note }

// Run saves snapshots until ctx is done.
func (s *Schedule) Run(ctx context.Context, ready func()) error {
	ready()
	timer := time.NewTimer(s.delay(time.Now(), min(s.Interval, firstDelay)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := s.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		next := s.delay(time.Now(), s.Interval)
		if err != nil {
			slog.Warn("cannot save or copy an etcd snapshot", "error", err)
			s.note(err.Error())
			next = min(s.Interval, retryInterval)
		} else {
			s.note("")
		}
		timer.Reset(next)
	}
}

// step saves a snapshot if one is due, and copies the snapshots to the second storage location.
func (s *Schedule) step(ctx context.Context) error {
	if s.delay(time.Now(), 0) <= 0 {
		path, err := s.save(ctx, time.Now())
		if err != nil {
			return fmt.Errorf("no etcd snapshot was saved: %w", err)
		}
		slog.Info("saved an etcd snapshot", "path", path)
	}
	if s.Copies == nil {
		return nil
	}
	files, err := List(s.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return s.Copies.sync(ctx, files)
}

// delay returns the time until the next snapshot is due, at most Interval. If there is no snapshot
// yet, delay returns first.
func (s *Schedule) delay(now time.Time, first time.Duration) time.Duration {
	files, err := List(s.Dir)
	if err != nil || len(files) == 0 {
		return first
	}
	age := now.Sub(files[len(files)-1].Time)
	return min(max(s.Interval-age, 0), s.Interval) // the clock might have been ahead
}

// save saves a snapshot, and removes the oldest snapshots and the partial files of interrupted
// snapshots.
func (s *Schedule) save(ctx context.Context, now time.Time) (path string, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", fmt.Errorf("create snapshot directory: %w", err)
	}
	interrupted, err := filepath.Glob(filepath.Join(s.Dir, prefix+"*"+partialSuffix))
	if err != nil {
		return "", fmt.Errorf("list snapshots: %w", err)
	}
	for _, path := range interrupted {
		if err := os.Remove(path); err != nil {
			return "", fmt.Errorf("remove interrupted snapshot: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	path = filepath.Join(s.Dir, prefix+now.UTC().Format(timeFormat)+suffix)
	if _, err := Save(ctx, s.Source, path); err != nil {
		return "", err
	}
	files, err := List(s.Dir)
	if err != nil {
		return "", err
	}
	for len(files) > s.Keep {
		if err := os.Remove(files[0].Path); err != nil {
			return "", fmt.Errorf("remove oldest snapshot: %w", err)
		}
		files = files[1:]
	}
	return path, nil
}

// A snapshot's file name consists of prefix, the time in UTC, and suffix.
const (
	prefix, suffix = "etcd-", ".db"
	timeFormat     = "20060102T150405Z"
)

// File is a complete snapshot that Schedule has saved.
type File struct {
	Path string
	// Time is the time in the file name.
	Time time.Time
}

// List returns the snapshots in a directory, oldest first. If the directory does not exist, the
// list is empty. Other files are ignored.
func List(dir string) (files []File, err error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, entry := range entries {
		if saved, isSnapshot := timeOf(entry.Name()); isSnapshot && entry.Type().IsRegular() {
			files = append(files, File{Path: filepath.Join(dir, entry.Name()), Time: saved})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return a.Time.Compare(b.Time) })
	return files, nil
}

// timeOf returns the time in a snapshot's file name.
func timeOf(name string) (saved time.Time, ok bool) {
	text, hasPrefix := strings.CutPrefix(name, prefix)
	text, hasSuffix := strings.CutSuffix(text, suffix)
	saved, err := time.Parse(timeFormat, text)
	return saved, hasPrefix && hasSuffix && err == nil
}
