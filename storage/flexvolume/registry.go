package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Registry knows the drivers of a plug-in directory while Run runs. Its other methods are safe for concurrent use, never
// call a driver, and, but for Ready, never wait.
type Registry struct {
	// Dir is the plug-in directory. It is created where it is missing.
	Dir string
	// KeepDir holds a copy of each driver's last version that could be initialized, so that volumes in use can be unmounted after
	// their driver has been removed or replaced by one that fails. It needs a file system that is not mounted noexec. It also notes
	// the calls that run, so that Run can end those of an earlier process that was killed, and the last failed call of each driver, for
	// LastFailure. Empty: nothing is kept.
	KeepDir string
	// Settings adjust single drivers; nil has the defaults for all.
	Settings func(driver string) Settings
	// Observer is told of every call of a driver and of every scan. It may be nil.
	Observer Observer

	mu         sync.Mutex
	entries    map[string]*entry
	generation uint64
	changed    chan struct{} // closed at the next change
	scans      int           // of the directory, so far
	next       time.Time     // when Run looks again by itself; zero: only after a change
	watch      *watch        // while Run runs
	running    string        // directory in which running calls are noted, or empty
}

// State is how far a driver has come.
type State string

const (
	// StateInitializing: the driver, or a new version of it, has been found and its init runs.
	StateInitializing State = "initializing"
	// StateReady: the driver can be used.
	StateReady State = "ready"
	// StateFailed: there is no usable executable, or its init failed and is tried again.
	StateFailed State = "failed"
	// StateRemoved: the driver is not installed any more, but volumes may still be in use.
	StateRemoved State = "removed"
)

// Entry is what is known about a driver.
type Entry struct {
	// Name is "vendor/driver", or "driver" without a vendor.
	Name  string
	State State
	// Version is the SHA-256 in hexadecimal of the executable that is installed, or "".
	Version string
	// Driver is the last version that could be initialized; nil if there was none. It serves the volumes that are in use; it is
	// for new ones only in StateReady.
	Driver *Driver
	// Err says why the state is StateFailed.
	Err error
	// Retry is when init is run, for the first time or after it failed.
	Retry time.Time
}

// List is every known driver, by name.
func (r *Registry) List() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Entry
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		list = append(list, r.entries[name].Entry)
	}
	return list
}

// Lookup is what is known about one driver.
func (r *Registry) Lookup(driver string) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.entries[driver]
	if !known {
		return Entry{}, false
	}
	return e.Entry, true
}

// Generation grows with every change of an entry. It makes a cheap question of whether anything happened.
func (r *Registry) Generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// Changed is closed at the next change of an entry.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change()
}

// Ready is the driver for new volumes. It waits while the driver is being initialized; the error says what is in the way.
func (r *Registry) Ready(ctx context.Context, driver string) (*Driver, error) {
	for {
		changed := r.Changed()
		e, known := r.Lookup(driver)
		switch {
		case !known:
			return nil, fmt.Errorf("find FlexVolume driver %q: it is not installed; install it as %s", driver, executable(r.Dir, driver))
		case e.State == StateReady:
			return e.Driver, nil
		case e.State == StateRemoved:
			return nil, fmt.Errorf("find FlexVolume driver %q: it has been removed; install it again as %s", driver, executable(r.Dir, driver))
		case e.State == StateFailed:
			return nil, fmt.Errorf("use FlexVolume driver %q: %w", driver, e.Err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("use FlexVolume driver %q: its init has not ended: %w", driver, context.Cause(ctx))
		}
	}
}

// InUse is the driver for a volume that is in use already: the last version that could be initialized. The error is ErrGone where none
// is known.
func (r *Registry) InUse(driver string) (*Driver, error) {
	if e, known := r.Lookup(driver); known && e.Driver != nil {
		return e.Driver, nil
	}
	return nil, fmt.Errorf("find FlexVolume driver %q: %w", driver, ErrGone)
}

// Forget drops a removed driver, which no volume uses any more, and the copy that was kept of it. Of any other
// driver it does nothing.
func (r *Registry) Forget(driver string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[driver]; !known || e.State != StateRemoved {
		return nil
	}
	delete(r.entries, driver)
	r.publish()
	if r.KeepDir == "" {
		return nil
	}
	if err := errors.Join(os.RemoveAll(keptDir(r.KeepDir, driver)), os.RemoveAll(failureFile(r.KeepDir, driver))); err != nil {
		return fmt.Errorf("remove copy of FlexVolume driver %q: %w", driver, err)
	}
	return nil
}

// settings are those of one driver.
func (r *Registry) settings(driver string) Settings {
	if r.Settings == nil {
		return Settings{}
	}
	return r.Settings(driver)
}

// observer is never nil.
func (r *Registry) observer() Observer {
	if r.Observer == nil {
		return unobserved{}
	}
	return r.Observer
}

// change is the channel that publish closes. The caller holds mu.
func (r *Registry) change() chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// publish tells everyone of a change. The caller holds mu.
func (r *Registry) publish() {
	r.generation++
	close(r.change())
	r.changed = nil
}
