package rsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quietPeriod is the time without changes that must pass before files are copied again, so that
// files that are written together are copied together.
const quietPeriod = 500 * time.Millisecond

// watch copies files immediately, and again after each change below a directory, until ctx is done.
// It returns an error of the first copy. It only reports errors of later copies, because a file can
// be deleted while it is being copied.
func watch(ctx context.Context, directory string, copy func() error, report func(error)) error {
	for first := true; ; first = false {
		changes, err := watchTree(directory) // watch before the copy, so that no change is missed
		if err != nil {
			return err
		}
		switch err = copy(); {
		case err != nil && first:
			changes.Close()
			return err
		case err != nil && ctx.Err() == nil:
			report(err)
		}
		err = waitForChange(ctx, changes)
		changes.Close()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func watchTree(directory string) (*fsnotify.Watcher, error) {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", directory, err)
	}
	err = filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = changes.Add(name)
		}
		if name != directory && errors.Is(err, fs.ErrNotExist) {
			return nil // the file was deleted in the meantime
		}
		return err
	})
	if err != nil {
		changes.Close()
		return nil, fmt.Errorf("watch %q: %w", directory, err)
	}
	return changes, nil
}

// waitForChange waits for a change, and then until there have been no changes for quietPeriod.
func waitForChange(ctx context.Context, changes *fsnotify.Watcher) error {
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer:
			return nil
		case event := <-changes.Events:
			if event.Op != fsnotify.Chmod {
				timer = time.After(quietPeriod)
			}
		case err := <-changes.Errors:
			return fmt.Errorf("watch: %w", err)
		}
	}
}
