package flexvolume

import (
	"fmt"
	"maps"
	"os"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch notices changes of the plug-in directory and of the drivers' directories in it. Its fields but changed belong to the one
// goroutine that scans.
type watch struct {
	// changed has a value while something has changed that no scan has looked at.
	changed chan struct{}
	// last is the time of the last scan.
	last time.Time
	// blind says why the last scan could not watch everything; nil means that it does.
	blind error

	watcher *fsnotify.Watcher
	pumped  chan struct{}     // closed when the goroutine that reads the watcher has ended
	watched map[string]uint64 // inode by path
}

func newWatch() *watch {
	return &watch{changed: make(chan struct{}, 1), watched: map[string]uint64{}}
}

// follow watches a directory; where another directory has taken its place since, that one.
func (w *watch) follow(dir string) {
	if err := w.add(dir); err != nil {
		w.blind = err
	}
}

func (w *watch) add(dir string) error {
	if w.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return fmt.Errorf("watch directories: %w", err)
		}
		w.watcher, w.pumped = watcher, make(chan struct{})
		go w.pump()
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("watch directory: %w", err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	if w.watched[dir] == inode {
		return nil
	}
	_ = w.watcher.Remove(dir)
	if err := w.watcher.Add(dir); err != nil {
		delete(w.watched, dir)
		return fmt.Errorf("watch directory %s: %w; raise fs.inotify.max_user_watches", dir, err)
	}
	w.watched[dir] = inode
	return nil
}

// refresh forgets the directories that the watcher has dropped, as it does with those that are deleted or renamed: another
// one may appear with the same path and even the same inode.
func (w *watch) refresh() {
	if w.watcher == nil {
		return
	}
	still := map[string]bool{}
	for _, dir := range w.watcher.WatchList() {
		still[dir] = true
	}
	maps.DeleteFunc(w.watched, func(dir string, _ uint64) bool { return !still[dir] })
}

// unfollow stops to watch the directories that a scan has not seen.
func (w *watch) unfollow(seen map[string]bool) {
	for dir := range w.watched {
		if !seen[dir] {
			_ = w.watcher.Remove(dir)
			delete(w.watched, dir)
		}
	}
}

// pump turns events of the watcher, of which there may be thousands, into one signal. An error of the watcher, such as an
// overflow of the kernel's queue, means that changes may have been missed, and is a change as well.
func (w *watch) pump() {
	defer close(w.pumped)
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

// close ends the watch.
func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
		<-w.pumped
	}
}
