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

// Registry tracks the drivers in a plugin directory while Run is running. Its other methods are
// safe for concurrent use and never call a driver. Only Ready blocks.
type Registry struct {
	// Dir is the plugin directory. It is created if it does not exist.
	Dir string
	// KeepDir is a directory for copies and records of drivers. It contains a copy of the last
	// version of each driver whose init succeeded. The copy allows unmounting volumes in use after
	// their driver has been removed or has been replaced by a version that fails. KeepDir must not
	// be mounted noexec. For each driver, it also records the last failed call (see LastFailure),
	// recent calls (see History), and running calls. Run uses the records of running calls to kill
	// the drivers of a process that crashed. If KeepDir is empty, nothing is stored.
	KeepDir string
	// Settings returns a driver's settings. If it is nil, all drivers use the defaults.
	Settings func(driver string) Settings
	// Observer, if not nil, observes all driver calls and scans.
	Observer Observer

	mu              sync.Mutex
	entries         map[string]*entry
	generation      uint64
	changed         chan struct{} // closed at the next change
	scans           int           // number of scans
	next            time.Time     // when Run next acts without a change; zero means never
	watch           *watch        // set while Run runs
	runningCallsDir string        // directory for the records of running calls, or ""
}

// State is a driver's state.
type State string

const (
	// StateInitializing means that a new driver or version has been found and its init is running.
	StateInitializing State = "initializing"
	// StateReady means that the driver can be used.
	StateReady State = "ready"
	// StateFailed means that the executable is missing or unusable, or that init failed and will be
	// retried.
	StateFailed State = "failed"
	// StateRemoved means that the driver is no longer installed. Volumes might still use it.
	StateRemoved State = "removed"
)

// Entry describes a driver.
type Entry struct {
	// Name is "vendor/driver", or "driver" if there is no vendor.
	Name  string
	State State
	// Version is the SHA-256 of the installed executable in hexadecimal, or "".
	Version string
	// Driver is the last version whose init succeeded, or nil. It serves volumes in use. It must be
	// used for new volumes only in StateReady.
	Driver *Driver
	// Err is the reason for StateFailed.
	Err error
	// Retry is the time of the next init, or zero.
	Retry time.Time
}

// List returns all drivers, sorted by name.
func (r *Registry) List() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Entry
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		list = append(list, r.entries[name].Entry)
	}
	return list
}

// Lookup returns a driver's entry. It returns false if the driver is unknown.
func (r *Registry) Lookup(driver string) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[driver]
	if !ok {
		return Entry{}, false
	}
	return e.Entry, true
}

// Generation returns a number that increases whenever an entry changes. It is a cheap way to detect
// changes.
func (r *Registry) Generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// Changed returns a channel that is closed when an entry next changes.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changeChannel()
}

// Ready returns the driver to use for new volumes. It waits while init is running. The error
// explains why the driver cannot be used.
func (r *Registry) Ready(ctx context.Context, driver string) (*Driver, error) {
	for {
		changed := r.Changed()
		e, ok := r.Lookup(driver)
		switch {
		case !ok:
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
			return nil, fmt.Errorf("use FlexVolume driver %q: its init is still running: %w", driver, context.Cause(ctx))
		}
	}
}

// InUse returns the driver for volumes that are in use: the last version whose init succeeded. The
// error is ErrGone if there is no such version.
func (r *Registry) InUse(driver string) (*Driver, error) {
	if e, ok := r.Lookup(driver); ok && e.Driver != nil {
		return e.Driver, nil
	}
	return nil, fmt.Errorf("find FlexVolume driver %q: %w", driver, ErrGone)
}

// Forget deletes a removed driver that no volume uses, and its last-good copy. It ignores drivers
// in other states.
func (r *Registry) Forget(driver string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[driver]; !ok || e.State != StateRemoved {
		return nil
	}
	delete(r.entries, driver)
	r.notify()
	if r.KeepDir == "" {
		return nil
	}
	if err := errors.Join(os.RemoveAll(lastGoodDir(r.KeepDir, driver)), os.RemoveAll(failureFile(r.KeepDir, driver)),
		os.RemoveAll(historyFile(r.KeepDir, driver)), os.RemoveAll(historyFile(r.KeepDir, driver)+".1")); err != nil {
		return fmt.Errorf("remove copy of FlexVolume driver %q: %w", driver, err)
	}
	return nil
}

func (r *Registry) settings(driver string) Settings {
	if r.Settings == nil {
		return Settings{}
	}
	return r.Settings(driver)
}

// observer returns the Observer, or a no-op observer if it is nil.
func (r *Registry) observer() Observer {
	if r.Observer == nil {
		return noopObserver{}
	}
	return r.Observer
}

// changeChannel returns the channel that notify closes. The caller must hold mu.
func (r *Registry) changeChannel() chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// notify announces a change. The caller must hold mu.
func (r *Registry) notify() {
	r.generation++
	close(r.changeChannel())
	r.changed = nil
}
