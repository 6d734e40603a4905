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
	// scanInterval is the minimum time between two scans of the plugin directory.
	scanInterval = time.Second
	// scanDelay batches the changes of one installation into a single scan.
	scanDelay = 50 * time.Millisecond
	// pollInterval is the scan interval if the directory cannot be watched.
	pollInterval = 5 * time.Second
	// initTimeout limits how long Run waits for the drivers of the first scan if KeepDir is empty.
	initTimeout = 10 * time.Second
	// After a failed init, the retry backoff doubles from minBackoff to maxBackoff.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Name returns the component's name.
func (r *Registry) Name() string { return "flexvolume" }

// Run watches the plugin directory until ctx is done, and initializes each driver that it finds.
// Drivers initialize concurrently. Run calls ready after the first scan, because a driver whose
// volumes are in use has a last-good copy that works without init. If KeepDir is empty, there are
// no copies, so Run first waits until the drivers of the first scan are initialized, or for
// initTimeout.
//
// A change takes effect within about one second: scans are at least scanInterval apart, and a scan
// always follows the last change. Directories whose names begin with "." are ignored. Run returns
// an error only if it cannot create the plugin directory.
func (r *Registry) Run(ctx context.Context, ready func()) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("create FlexVolume plugin directory: %w", err)
	}
	if err := r.killOrphans(); err != nil {
		slog.Warn("cannot kill FlexVolume drivers that a crashed process started", "error", err)
	}
	if err := r.loadLastGood(); err != nil {
		slog.Warn("cannot read the last-good copies of FlexVolume drivers", "error", err)
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	r.watch = newWatch()
	defer r.watch.close()
	scanned := make(chan struct{})
	tasks.Go(func() { r.waitForFirst(ctx, scanned, ready) })
	scannedOnce := sync.OnceFunc(func() { close(scanned) })

	results := make(chan initResult)
	initialize := func(ctx context.Context, name string, attempt int, driver *Driver) {
		tasks.Go(func() {
			result := initResult{name: name, attempt: attempt, driver: driver}
			if _, result.err = driver.Init(ctx); result.err == nil {
				result.copyErr = r.saveLastGood(driver)
			}
			select {
			case results <- result:
			case <-ctx.Done():
			}
		})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	// due is the time of the next scan. Zero means that nothing has changed.
	for due := time.Now(); ; {
		if next := r.nextWake(due); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.watch.changed:
			due = earlier(due, latest(r.watch.last.Add(scanInterval), time.Now().Add(scanDelay)))
		case result := <-results:
			r.finishInit(result)
		case <-timer.C:
		}
		if !due.IsZero() && !due.After(time.Now()) {
			due = r.scan(r.watch)
			scannedOnce()
		}
		r.startInits(ctx, initialize)
	}
}

// scan reads the directory once. If the directory cannot be read or watched completely, it returns
// the time of the next scan, in case no change is reported before that time. Otherwise, it returns
// zero.
func (r *Registry) scan(watch *watch) time.Time {
	start := time.Now()
	files, err := watch.scan(r.Dir)
	defer func() { r.observer().ScanEnds(Scan{Duration: time.Since(start), Err: err}) }()
	if err != nil {
		slog.Warn("cannot scan FlexVolume plugin directory", "error", err)
		return time.Now().Add(pollInterval)
	}
	r.hashChanged(files)
	r.apply(files)
	if watch.watchErr != nil {
		slog.Warn("cannot watch FlexVolume plugin directory; polling it instead", "error", watch.watchErr)
		return time.Now().Add(pollInterval)
	}
	for _, file := range files {
		if errors.Is(file.err, errUntrusted) { // The untrusted directory might not be watched.
			return time.Now().Add(pollInterval)
		}
	}
	return time.Time{}
}

// waitForFirst calls ready after the first scan and, without KeepDir, after the init of its
// drivers.
func (r *Registry) waitForFirst(ctx context.Context, scanned <-chan struct{}, ready func()) {
	select {
	case <-scanned:
	case <-ctx.Done():
		return
	}
	if r.KeepDir == "" {
		initCtx, cancel := context.WithTimeout(ctx, initTimeout)
		defer cancel()
		for _, e := range r.List() {
			_, _ = r.Ready(initCtx, e.Name)
		}
	}
	if ctx.Err() == nil {
		ready()
	}
}

// nextWake returns the time at which Run must act even without a change: the time of the next scan
// or init. Zero means never, so Run uses no CPU time while nothing changes.
func (r *Registry) nextWake(scan time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = scan
	for _, e := range r.entries {
		r.next = earlier(r.next, e.Retry)
	}
	return r.next
}

// earlier returns the earlier of two times. Zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
