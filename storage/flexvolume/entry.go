package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// entry is an Entry with the state that discovery needs. Only Run changes entries, and Forget
// deletes them.
type entry struct {
	Entry
	file         fileID // ID of the installed executable
	limiter      *callLimiter
	history      *history
	failureCount int
	// attempt identifies the running init, so that results from earlier versions are ignored.
	// cancel cancels this init.
	attempt int
	cancel  context.CancelFunc
}

// initResult is the result of an init. copyErr is the error from saving the last-good copy.
type initResult struct {
	name         string
	attempt      int
	driver       *Driver
	err, copyErr error
}

// hashChanged computes the version of each executable that has changed since the last scan. The
// caller must not hold mu, because computing the hash might require reading a lot of data.
func (r *Registry) hashChanged(files map[string]*driverFile) {
	for name, file := range files {
		if file.err != nil {
			continue
		}
		if e, ok := r.lastFile(name); ok && e == file.id {
			continue
		}
		file.version, file.err = hashFile(file.path)
	}
}

// lastFile returns the file ID that the executable had in the last scan.
func (r *Registry) lastFile(driver string) (fileID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[driver]; ok && e.State != StateRemoved {
		return e.file, true
	}
	return fileID{}, false
}

// apply updates the entries according to the result of a scan.
func (r *Registry) apply(files map[string]*driverFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scans++
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	for name, file := range files {
		e := r.entries[name]
		if e == nil {
			e = r.newEntry(name)
		}
		if file.missing && e.Driver != nil {
			delete(files, name)
			continue
		}
		r.applyFile(e, file)
	}
	for name, e := range r.entries {
		if _, ok := files[name]; !ok && e.State != StateRemoved {
			r.applyRemoved(e)
		}
	}
}

// newEntry adds an entry. The caller must hold mu.
func (r *Registry) newEntry(driver string) *entry {
	if r.entries == nil {
		r.entries = map[string]*entry{}
	}
	e := &entry{Entry: Entry{Name: driver}, limiter: newCallLimiter(r.settings(driver).Concurrency), history: &history{}}
	if r.KeepDir != "" {
		e.history.file = historyFile(r.KeepDir, driver)
	}
	r.entries[driver] = e
	return e
}

// applyFile updates an entry according to its driver's executable. A replaced executable with the
// same content is treated as unchanged.
func (r *Registry) applyFile(e *entry, file *driverFile) {
	switch {
	case file.err != nil:
		if e.State == StateFailed && e.Err.Error() == file.err.Error() {
			return
		}
		slog.Warn("cannot use FlexVolume driver", "driver", e.Name, "error", file.err)
		e.setState(StateFailed, file.err)
		e.Version, e.file = "", fileID{}
	case file.version == "": // unchanged since the last scan
		return
	case file.version == e.Version && e.State != StateRemoved:
		e.file = file.id
		return
	default:
		slog.Info("FlexVolume driver found", "driver", e.Name, "version", file.version)
		e.setState(StateInitializing, nil)
		e.Version, e.file, e.Retry = file.version, file.id, time.Now()
	}
	r.useLastGood(e)
	r.notify()
}

// applyRemoved marks a driver as removed.
func (r *Registry) applyRemoved(e *entry) {
	slog.Info("FlexVolume driver removed", "driver", e.Name)
	e.setState(StateRemoved, nil)
	e.Version, e.file = "", fileID{}
	if e.Driver == nil {
		delete(r.entries, e.Name)
	}
	r.useLastGood(e)
	r.notify()
}

// startInits starts each init that is due.
func (r *Registry) startInits(ctx context.Context, initialize func(context.Context, string, int, *Driver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.entries {
		if e.Retry.IsZero() || e.Retry.After(time.Now()) {
			continue
		}
		e.cancelInit()
		e.Retry = time.Time{}
		ctx, cancel := context.WithCancel(ctx)
		e.cancel = cancel
		initialize(ctx, name, e.attempt, r.newDriver(e))
	}
}

// newDriver returns the installed version of a driver. The driver is not initialized yet.
func (r *Registry) newDriver(e *entry) *Driver {
	driver := NewDriver(e.Name, executable(r.Dir, e.Name), r.settings(e.Name))
	driver.version, driver.limiter, driver.observer = e.Version, e.limiter, r.observer()
	driver.runningCallsDir, driver.history = r.runningCallsDir, e.history
	if r.KeepDir != "" {
		driver.failureFile = failureFile(r.KeepDir, e.Name)
	}
	return driver
}

// finishInit stores an init's result, unless the driver has changed since the init started.
func (r *Registry) finishInit(result initResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[result.name]
	if e == nil || e.attempt != result.attempt {
		return
	}
	if result.err == nil {
		slog.Info("FlexVolume driver ready", "driver", e.Name, "version", e.Version)
		if result.copyErr != nil {
			slog.Warn("cannot save the last-good copy of a FlexVolume driver", "driver", e.Name, "error", result.copyErr)
		}
		e.setState(StateReady, nil)
		e.Driver = result.driver
		r.notify()
		return
	}
	if errors.Is(result.err, ErrNotSupported) {
		result.err = fmt.Errorf("run init of FlexVolume driver %q: %w", e.Name, result.err)
	}
	failures := e.failureCount
	e.setState(StateFailed, result.err)
	e.failureCount = failures + 1
	e.Retry = time.Now().Add(backoff(failures))
	r.useLastGood(e)
	slog.Warn("cannot initialize FlexVolume driver", "driver", e.Name, "error", result.err, "retryAt", e.Retry)
	r.notify()
}

// backoff returns the delay before the next init, given the number of earlier failures.
func backoff(failures int) time.Duration { return min(minBackoff<<min(failures, 20), maxBackoff) }

// setState changes the entry's state and resets the fields of the previous state.
func (e *entry) setState(state State, err error) {
	e.cancelInit()
	e.State, e.Err, e.Retry, e.failureCount = state, err, time.Time{}, 0
}

// cancelInit cancels the running init, if any, and invalidates its result.
func (e *entry) cancelInit() {
	e.attempt++
	if e.cancel != nil {
		e.cancel()
		e.cancel = nil
	}
}
