package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// entry is an Entry with what discovery needs to know. Only Run changes it, and Forget drops it.
type entry struct {
	Entry
	file     fileID // of the installed executable
	gate     *gate
	failures int
	// attempt tells the answer of the running init from those of earlier versions; cancel ends it.
	attempt int
	cancel  context.CancelFunc
}

// initialized is the end of an init. kept is the error of keeping a copy after it.
type initialized struct {
	name      string
	attempt   int
	driver    *Driver
	err, kept error
}

// identify computes the versions of the executables that are not those of the last scan. It takes no lock, because it may
// read much.
func (r *Registry) identify(found map[string]*installed) {
	for name, file := range found {
		if file.err != nil {
			continue
		}
		if e, known := r.fileOf(name); known && e == file.id {
			continue
		}
		file.version, file.err = hashFile(file.path)
	}
}

// fileOf is the executable that the last scan saw.
func (r *Registry) fileOf(driver string) (fileID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[driver]; known && e.State != StateRemoved {
		return e.file, true
	}
	return fileID{}, false
}

// apply brings the entries in line with what a scan found.
func (r *Registry) apply(found map[string]*installed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scans++
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	for name, file := range found {
		e := r.entries[name]
		if e == nil {
			e = r.newEntry(name)
		}
		if file.missing && e.Driver != nil {
			delete(found, name)
			continue
		}
		r.applyFound(e, file)
	}
	for name, e := range r.entries {
		if _, still := found[name]; !still && e.State != StateRemoved {
			r.applyRemoved(e)
		}
	}
}

// newEntry adds an entry. The caller holds mu.
func (r *Registry) newEntry(driver string) *entry {
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	e := &entry{Entry: Entry{Name: driver}, gate: newGate(r.settings(driver).Concurrency)}
	r.entries[driver] = e
	return e
}

// applyFound notes the executable of a driver. One with the same content as before is no change, whatever else happened to it.
func (r *Registry) applyFound(e *entry, file *installed) {
	switch {
	case file.err != nil:
		if e.State == StateFailed && e.Err.Error() == file.err.Error() {
			return
		}
		slog.Warn("FlexVolume driver cannot be used", "driver", e.Name, "error", file.err)
		e.become(StateFailed, file.err)
		e.Version, e.file = "", fileID{}
	case file.version == "": // the very file of the last scan
		return
	case file.version == e.Version && e.State != StateRemoved:
		e.file = file.id
		return
	default:
		slog.Info("FlexVolume driver found", "driver", e.Name, "version", file.version)
		e.become(StateInitializing, nil)
		e.Version, e.file, e.Retry = file.version, file.id, time.Now()
	}
	r.useKept(e)
	r.publish()
}

// applyRemoved notes that a driver is not installed any more.
func (r *Registry) applyRemoved(e *entry) {
	slog.Info("FlexVolume driver removed", "driver", e.Name)
	e.become(StateRemoved, nil)
	e.Version, e.file = "", fileID{}
	if e.Driver == nil {
		delete(r.entries, e.Name)
	}
	r.useKept(e)
	r.publish()
}

// beginInits starts every init that is due.
func (r *Registry) beginInits(ctx context.Context, initialize func(context.Context, string, int, *Driver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.entries {
		if e.Retry.IsZero() || e.Retry.After(time.Now()) {
			continue
		}
		e.stop()
		e.Retry = time.Time{}
		ctx, cancel := context.WithCancel(ctx)
		e.cancel = cancel
		initialize(ctx, name, e.attempt, r.newDriver(e))
	}
}

// newDriver is the driver that is installed now, not initialized.
func (r *Registry) newDriver(e *entry) *Driver {
	driver := NewDriver(e.Name, executable(r.Dir, e.Name), r.settings(e.Name))
	driver.version, driver.gate, driver.observer = e.Version, e.gate, r.observer()
	driver.running = r.running
	if r.KeepDir != "" {
		driver.failures = failureFile(r.KeepDir, e.Name)
	}
	return driver
}

// finishInit notes the end of an init, unless the driver has changed meanwhile.
func (r *Registry) finishInit(end initialized) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[end.name]
	if e == nil || e.attempt != end.attempt {
		return
	}
	if end.err == nil {
		slog.Info("FlexVolume driver ready", "driver", e.Name, "version", e.Version)
		if end.kept != nil {
			slog.Warn("keep copy of FlexVolume driver", "driver", e.Name, "error", end.kept)
		}
		e.become(StateReady, nil)
		e.Driver = end.driver
		r.publish()
		return
	}
	if errors.Is(end.err, ErrNotSupported) {
		end.err = fmt.Errorf("run init of FlexVolume driver %q: %w", e.Name, end.err)
	}
	failures := e.failures
	e.become(StateFailed, end.err)
	e.failures = failures + 1
	e.Retry = time.Now().Add(backOff(failures))
	r.useKept(e)
	slog.Warn("FlexVolume driver cannot be initialized", "driver", e.Name, "error", end.err, "retry", e.Retry)
	r.publish()
}

// backOff is how long a failed init is not tried again after so many earlier failures.
func backOff(failures int) time.Duration { return min(firstRetry<<min(failures, 20), lastRetry) }

// become puts the entry into a state, and forgets what belonged to the one before.
func (e *entry) become(state State, err error) {
	e.stop()
	e.State, e.Err, e.Retry, e.failures = state, err, time.Time{}, 0
}

// stop ends the running init, if there is one, and makes its answer void.
func (e *entry) stop() {
	e.attempt++
	if e.cancel != nil {
		e.cancel()
		e.cancel = nil
	}
}
