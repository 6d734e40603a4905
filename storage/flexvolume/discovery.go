package flexvolume

import (
	"context"
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
	if err := r.endOrphans(); err != nil {
		slog.Warn("end FlexVolume drivers that were called before a crash", "error", err)
	}
	if err := r.loadKept(); err != nil {
		slog.Warn("read kept FlexVolume drivers", "error", err)
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	r.watch = newWatch()
	defer r.watch.close()
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
		if next := r.plan(due); next.IsZero() {
			wake.Stop()
		} else {
			wake.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.watch.changed:
			due = earlier(due, later(r.watch.last.Add(scanInterval), time.Now().Add(scanDelay)))
		case end := <-ended:
			r.finishInit(end)
		case <-wake.C:
		}
		if !due.IsZero() && !due.After(time.Now()) {
			due = r.scan(r.watch)
			first()
		}
		r.beginInits(ctx, initialize)
	}
}

// scan looks at the directory once. It returns when to look again although no change is seen: zero, unless the directory cannot be watched or read.
func (r *Registry) scan(watch *watch) time.Time {
	began := time.Now()
	found, err := watch.scan(r.Dir)
	defer func() { r.observer().ScanEnds(Scan{Duration: time.Since(began), Err: err}) }()
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

// plan is when Run has something to do although nothing changes: a scan that is due, or an init. Zero is never, so that drivers that do not change
// cost nothing.
func (r *Registry) plan(scan time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = scan
	for _, e := range r.entries {
		r.next = earlier(r.next, e.Retry)
	}
	return r.next
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
