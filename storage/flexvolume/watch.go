package flexvolume

import (
	"fmt"
	"maps"
	"os"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch detects changes in the plugin directory and in the driver directories below it. Only the
// scanning goroutine may access the fields other than changed.
type watch struct {
	// changed contains a value if anything has changed since the last scan.
	changed chan struct{}
	// last is the time of the last scan.
	last time.Time
	// watchErr is the reason why the last scan could not watch every directory, or nil.
	watchErr error

	watcher  *fsnotify.Watcher
	pumpDone chan struct{}     // closed when the goroutine that reads the watcher has ended
	inodes   map[string]uint64 // inode by path
}

func newWatch() *watch {
	return &watch{changed: make(chan struct{}, 1), inodes: map[string]uint64{}}
}

// tryAdd watches a directory. If another directory has replaced it since the last scan, tryAdd
// watches the new directory.
func (w *watch) tryAdd(dir string) {
	if err := w.add(dir); err != nil {
		w.watchErr = err
	}
}

func (w *watch) add(dir string) error {
	if w.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return fmt.Errorf("watch directories: %w", err)
		}
		w.watcher, w.pumpDone = watcher, make(chan struct{})
		go w.forward()
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("watch directory: %w", err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	if w.inodes[dir] == inode {
		return nil
	}
	_ = w.watcher.Remove(dir)
	if err := w.watcher.Add(dir); err != nil {
		delete(w.inodes, dir)
		return fmt.Errorf("watch directory %s: %w; raise fs.inotify.max_user_watches", dir, err)
	}
	w.inodes[dir] = inode
	return nil
}

// dropStale drops directories that the watcher no longer watches because they were deleted or
// renamed. A new directory can have the same path and even the same inode.
func (w *watch) dropStale() {
	if w.watcher == nil {
		return
	}
	current := map[string]bool{}
	for _, dir := range w.watcher.WatchList() {
		current[dir] = true
	}
	maps.DeleteFunc(w.inodes, func(dir string, _ uint64) bool { return !current[dir] })
}

// removeExcept stops watching directories that are not in seen.
func (w *watch) removeExcept(seen map[string]bool) {
	for dir := range w.inodes {
		if !seen[dir] {
			_ = w.watcher.Remove(dir)
			delete(w.inodes, dir)
		}
	}
}

// forward merges the watcher's events into one signal, because there can be thousands of events. It
// treats a watcher error, such as an overflow of the kernel's queue, as a change, because changes
// might have been missed.
func (w *watch) forward() {
	defer close(w.pumpDone)
	for {
		select {
		case _, open := <-w.watcher.Events:
			if !open {
				return
			}
		case _, open := <-w.watcher.Errors:
			if !open {
				return
			}
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// close stops watching.
func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
		<-w.pumpDone
	}
}
