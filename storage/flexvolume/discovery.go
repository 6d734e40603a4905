package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// scanInterval is the shortest time between two scans of the plug-in directory.
	scanInterval = time.Second
	// scanDelay lets the changes of one installation, which come together, be seen by one scan.
	scanDelay = 50 * time.Millisecond
	// pollInterval is how often the directory is scanned while it cannot be watched.
	pollInterval = 5 * time.Second
	// initGrace bounds how long Run waits for the drivers that it finds at its start before it calls ready.
	initGrace = 10 * time.Second
	// A failed init is tried again after firstRetry, then after twice the time, and so on to lastRetry.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
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

// Name is the part's name.
func (r *Registry) Name() string { return "flexvolume" }

// Run watches the plug-in directory until ctx ends, and initializes every driver that it finds, each in the background so that
// none waits for another. ready is called when the drivers found first have been initialized, or have not been for ten seconds.
//
// A change of the directory is in force about a second later at most: scans are at least a second apart, and one
// always follows the last change. Names that begin with "." are no drivers. The error is that of the directory.
func (r *Registry) Run(ctx context.Context, ready func()) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("create FlexVolume plug-in directory: %w", err)
	}
	if err := r.loadKept(); err != nil {
		slog.Warn("read kept FlexVolume drivers", "error", err)
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	watch := newWatch()
	defer watch.close()
	scanned := make(chan struct{})
	tasks.Go(func() { r.awaitFirst(ctx, scanned, ready) })
	first := sync.OnceFunc(func() { close(scanned) })

	ended := make(chan initialized)
	initialize := func(ctx context.Context, name string, attempt int, driver *Driver) {
		tasks.Go(func() {
			end := initialized{name: name, attempt: attempt, driver: driver}
			if _, end.err = driver.Init(ctx); end.err == nil {
				end.kept = r.keep(driver)
			}
			select {
			case ended <- end:
			case <-ctx.Done():
			}
		})
	}
	wake := time.NewTimer(0)
	defer wake.Stop()
	// due is when the next scan is; zero while nothing has changed.
	for due := time.Now(); ; {
		if next := earlier(due, r.nextInit()); next.IsZero() {
			wake.Stop()
		} else {
			wake.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watch.changed:
			due = earlier(due, later(watch.last.Add(scanInterval), time.Now().Add(scanDelay)))
		case end := <-ended:
			r.finishInit(end)
		case <-wake.C:
		}
		if !due.IsZero() && !due.After(time.Now()) {
			due = r.scan(watch)
			first()
		}
		r.beginInits(ctx, initialize)
	}
}

// scan looks at the directory once. It returns when to look again although no change is seen: zero, unless the directory cannot be watched or read.
func (r *Registry) scan(watch *watch) time.Time {
	found, err := watch.scan(r.Dir)
	if err != nil {
		slog.Warn("scan FlexVolume plug-in directory", "error", err)
		return time.Now().Add(pollInterval)
	}
	r.identify(found)
	r.apply(found)
	if watch.blind != nil {
		slog.Warn("watch FlexVolume plug-in directory; it is read every few seconds instead", "error", watch.blind)
		return time.Now().Add(pollInterval)
	}
	return time.Time{}
}

// awaitFirst calls ready when the first scan's drivers are initialized, or after initGrace.
func (r *Registry) awaitFirst(ctx context.Context, scanned <-chan struct{}, ready func()) {
	select {
	case <-scanned:
	case <-ctx.Done():
		return
	}
	grace, cancel := context.WithTimeout(ctx, initGrace)
	defer cancel()
	for _, e := range r.List() {
		_, _ = r.Ready(grace, e.Name)
	}
	if ctx.Err() == nil {
		ready()
	}
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
	driver.version, driver.gate = e.Version, e.gate
	if r.Observe != nil {
		driver.observe = r.Observe
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
	e.Retry = time.Now().Add(min(firstRetry<<min(failures, 20), lastRetry))
	r.useKept(e)
	slog.Warn("FlexVolume driver cannot be initialized", "driver", e.Name, "error", end.err, "retry", e.Retry)
	r.publish()
}

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

// nextInit is when the next init is due, or zero.
func (r *Registry) nextInit() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	for _, e := range r.entries {
		next = earlier(next, e.Retry)
	}
	return next
}

// earlier is the first of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later is the last of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
