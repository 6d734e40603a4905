package haproxy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// running is the state of a running engine.
type running struct {
	process   *process
	orphans   []*process // processes of a killed engine, until the next process takes over
	served    *served    // state of process; nil until it serves
	files     map[string][]byte
	remaining map[string][]byte // route files on disk; nil if unknown
	reloaded  time.Time
	reload    *reload        // the reload in progress, or nil
	former    []*process     // replaced processes that still have connections
	demand    map[string]int // required spare backends by shape
	number    int            // number of reloads
	failed    int            // number of consecutive failed reloads
	retry     time.Time      // earliest time of the next reload
}

// Run waits for the first configuration, and then runs HAProxy until ctx is done. It calls ready
// when HAProxy is serving. If an HAProxy process exits, Run restarts it.
func (e *Engine) Run(ctx context.Context, ready func()) error {
	for _, dir := range []string{"conf", "run", certificatesDir, authoritiesDir} {
		if err := os.MkdirAll(filepath.Join(e.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("create router directory: %w", err)
		}
	}
	// HAProxy's user connects to sockets in these directories. The first directory is HAProxy's
	// working directory. The modes of the sockets control access.
	for _, dir := range []string{e.Dir, filepath.Join(e.Dir, "run")} {
		if err := makeSearchable(dir); err != nil {
			return fmt.Errorf("make router directory searchable for HAProxy's user: %w", err)
		}
	}
	now, err := e.begin()
	if err != nil {
		return err
	}
	defer func() {
		if now.reload != nil {
			now.reload.cancel()
			e.finish(now, <-now.reload.done)
		}
		stopAll(slices.Concat(now.former, now.before()), e.ShutdownTimeout)
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ended <-chan struct{}
		if now.process != nil {
			ended = now.process.ended
		}
		var reloaded <-chan error
		if now.reload != nil {
			reloaded = now.reload.done
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake():
		case <-timer.C:
		case err := <-reloaded:
			if err = e.finish(now, err); err != nil && ctx.Err() == nil {
				slog.Error("HAProxy does not serve the newest configuration", "error", err,
					"retryAfter", time.Until(now.retry).Round(time.Second))
			}
		case <-ended:
			if now.reload == nil { // otherwise, the next process might have taken over
				slog.Error("HAProxy ended; restarting it", "error", now.process.ending(),
					"output", now.process.output.String())
			}
			now.process, now.served = nil, nil
		}
		if now.served != nil {
			ready()
			ready = func() {}
		}
		if wait := e.step(ctx, now); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// begin finds the processes and route files of earlier engines. Files that are no longer needed are
// removed later.
func (e *Engine) begin() (*running, error) {
	now := &running{files: map[string][]byte{}, demand: map[string]int{}}
	for _, pattern := range []string{certificatesDir + "*", authoritiesDir + "*"} {
		paths, err := filepath.Glob(filepath.Join(e.Dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("list route files: %w", err)
		}
		for _, path := range paths {
			now.files[filepath.Join(filepath.Dir(pattern), filepath.Base(path))] = nil
		}
	}
	var err error
	if e.Outlive {
		now.orphans, err = orphans(e.Dir)
	}
	return now, err
}

// before returns the processes that the next process will replace.
func (r *running) before() []*process {
	if r.process != nil {
		return []*process{r.process}
	}
	return slices.DeleteFunc(r.orphans, func(p *process) bool { return !p.alive() })
}

// minBackoff is the delay before the next attempt to start HAProxy after a process has failed to
// start.
const minBackoff = time.Second

// step moves HAProxy toward the desired configuration. It sends commands to the running process,
// and reloads HAProxy if commands are not sufficient. wait is the delay before the next step, or 0
// if an event triggers the next step.
func (e *Engine) step(ctx context.Context, now *running) (wait time.Duration) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	config, number := e.desiredConfig()
	if config == nil {
		return 0
	}
	s := situation{serving: now.served != nil, reloading: now.reload != nil, reloaded: now.reloaded, retry: now.retry}
	if s.serving {
		s.complete = e.apply(now, config, number)
		s.settled, s.scarce, s.since = now.served.settled(), now.served.scarce(), now.served.since
		s.interval = e.interval(len(now.former))
	}
	wait, reload := s.next(time.Now())
	if reload {
		e.start(ctx, now, config, number)
	}
	return wait
}

// apply applies the changes that the runtime interface supports. complete reports whether HAProxy
// then serves the complete configuration.
func (e *Engine) apply(now *running, config *Config, number int) (complete bool) {
	complete, err := now.served.change(config, e.Script != "")
	if complete && err == nil {
		e.reach(number)
	}
	if now.reload != nil { // the next process might already have taken over
		return complete
	}
	if err != nil {
		slog.Warn("cannot change HAProxy at run time; reloading it", "error", err)
	}
	if err := now.syncFiles(e.Dir); err != nil {
		slog.Warn("cannot remove route files; reloading HAProxy", "error", err)
	}
	return complete
}

// situation is the input for the next transition in the package's state diagram. It is used after
// the first configuration has been set.
type situation struct {
	serving   bool // an HAProxy process serves requests
	reloading bool // the next HAProxy process is starting
	complete  bool // HAProxy serves all of the desired configuration
	settled   bool // HAProxy serves all of it, without spare backends
	scarce    bool // few spare backends are left
	// since is the time when the first spare backend was used.
	since time.Time
	// reloaded is the time when the last reload started. retry is the time when the backoff ends.
	reloaded, retry time.Time
	// interval is the minimum time between reloads.
	interval time.Duration
}

// next decides whether to start an HAProxy process. If start is false, wait is the delay after
// which the decision can change without an event. 0 means that the decision changes only after an
// event.
func (s situation) next(now time.Time) (wait time.Duration, start bool) {
	if s.reloading || s.serving && s.complete && s.settled {
		return 0, false
	}
	due := s.reloaded.Add(minBackoff)
	if s.serving {
		due = s.reloaded.Add(s.interval)
		if collected := s.since.Add(s.interval); s.complete && !s.scarce {
			due = later(due, collected) // all changes in an interval cause only one reload
		}
	}
	wait = later(due, s.retry).Sub(now)
	return max(wait, 0), wait <= 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
