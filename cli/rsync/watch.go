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

// calm is for how long nothing must change before it is copied, so that what is written at once is
// copied at once.
const calm = 500 * time.Millisecond

// watch copies at once, and again after every change below a directory, until ctx ends. What goes
// wrong with a later copy is reported: a file may have vanished while it was copied, which is a
// change too.
func watch(ctx context.Context, directory string, copy func() error, report func(error)) error {
	for first := true; ; first = false {
		changes, err := watchTree(directory) // before the copying, so that no change is missed
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
			return nil // it has vanished meanwhile
		}
		return err
	})
	if err != nil {
		changes.Close()
		return nil, fmt.Errorf("watch %q: %w", directory, err)
	}
	return changes, nil
}

// waitForChange waits for a change with nothing behind it.
func waitForChange(ctx context.Context, changes *fsnotify.Watcher) error {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-settled:
			return nil
		case event := <-changes.Events:
			if event.Op != fsnotify.Chmod {
				settled = time.After(calm)
			}
		case err := <-changes.Errors:
			return fmt.Errorf("watch: %w", err)
		}
	}
}
