package haproxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-platform/slipway/router/model"
)

// Engine runs HAProxy with the newest configuration. It applies changes to the running process if
// the runtime interface supports them. Otherwise it starts another process, which takes over. See
// the diagram in the package documentation.
type Engine struct {
	// Program is the path of HAProxy.
	Program string
	// Dir is the working directory, the same as the Writer's.
	Dir string
	// Interval is the minimum time between reloads. It grows with the number of former processes.
	Interval time.Duration
	// MaxFormer limits the former processes with connections. The default is 32.
	MaxFormer int
	// Script, if set, runs instead of a reload. It must make HAProxy read its configuration again.
	Script string
	// Grace is the time for open requests when the engine stops.
	Grace time.Duration
	// StatsTimeout limits a request for statistics. The default is 10 seconds.
	StatsTimeout time.Duration
	// Outlive keeps HAProxy running if this process is killed. The next engine of the directory
	// takes over from it.
	Outlive bool
	// Takeover limits the time until a new HAProxy serves. Then it is killed. The default is a
	// minute.
	Takeover time.Duration
	// Rejected, if set, is called when a configuration is not served. routes are the routes for
	// which HAProxy rejects it, if they can be found, and if they are unchanged in the newest
	// configuration.
	Rejected func(routes []model.ServiceAliasConfigKey, reason error)
	// Observe, if set, is called with the duration of writing and of reloading.
	Observe func(size, reloaded time.Duration)

	mu      sync.Mutex
	desired *Config
	number  int           // of desired
	reached int           // the highest number whose configuration was served completely
	changed chan struct{} // has a token if desired has changed
	once    sync.Once

	places atomic.Pointer[map[string]string] // spare backends in use, by the name of their backend
}

func (e *Engine) wake() chan struct{} {
	e.once.Do(func() { e.changed = make(chan struct{}, 1) })
	return e.changed
}

// Set sets the desired configuration and returns its number. Numbers increase.
func (e *Engine) Set(config *Config) (number int) {
	e.mu.Lock()
	e.desired = config
	e.number++
	number = e.number
	e.mu.Unlock()
	select {
	case e.wake() <- struct{}{}:
	default:
	}
	return number
}

// desiredConfig returns the desired configuration and its number.
func (e *Engine) desiredConfig() (*Config, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.desired, e.number
}

// Reached reports whether HAProxy has completely served the configuration with a number, or a later
// one.
func (e *Engine) Reached(number int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reached >= number
}

func (e *Engine) reach(number int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reached = max(e.reached, number)
}

// File returns the path of HAProxy's configuration.
func (e *Engine) File() string { return configFile(e.Dir) }

func configFile(dir string) string { return filepath.Join(dir, "conf", "haproxy.config") }

// Serves reports whether HAProxy already serves because an earlier engine was killed.
func (e *Engine) Serves() bool {
	return e.Outlive && e.Alive() == nil
}

func (e *Engine) control() runtime {
	return runtime{filepath.Join(e.Dir, "run", "haproxy.sock"), 10 * time.Second}
}

// Alive returns an error if HAProxy does not respond. Its cost does not depend on the number of
// routes.
func (e *Engine) Alive() error {
	_, err := e.ask("show info")
	return err
}

// Stats returns HAProxy's statistics as CSV.
func (e *Engine) Stats() (string, error) {
	stats, err := e.ask("show stat")
	var places map[string]string
	if published := e.places.Load(); published != nil {
		places = *published
	}
	return named(stats, places), err
}

func (e *Engine) ask(command string) (string, error) {
	control := e.control()
	control.timeout = cmp.Or(e.StatsTimeout, control.timeout)
	return control.ask(command)
}

// Page returns the path of the socket that serves HAProxy's statistics page.
func (e *Engine) Page() string { return filepath.Join(e.Dir, "run", "stats.sock") }

// running is the state of an engine.
type running struct {
	process   *process
	orphans   []*process // of an engine that was killed, until the next process takes over
	served    *served    // state of process; nil until it serves
	files     map[string][]byte
	remaining map[string][]byte // remaining files of routes
	reloaded  time.Time
	reload    *reload        // in progress, or nil
	former    []*process     // processes that still have connections
	demand    map[string]int // required spare backends by shape
	number    int            // count of reloads
	failed    int            // consecutive failed reloads
	retry     time.Time      // earliest time of the next reload
}

// Run runs HAProxy from the first configuration until ctx ends. It calls ready when HAProxy serves.
// It restarts a HAProxy that ends.
func (e *Engine) Run(ctx context.Context, ready func()) error {
	for _, dir := range []string{"conf", "run", certificatesDir, authoritiesDir} {
		if err := os.MkdirAll(filepath.Join(e.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("make directory of the router: %w", err)
		}
	}
	// HAProxy's user connects to sockets in these directories, from the first one as its working
	// directory. The modes of the sockets say who can.
	for _, dir := range []string{e.Dir, filepath.Join(e.Dir, "run")} {
		if err := makeSearchable(dir); err != nil {
			return fmt.Errorf("let HAProxy's user search the directory of the router: %w", err)
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
		stopAll(slices.Concat(now.former, now.before()), e.Grace)
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
			if now.reload == nil { // otherwise the next process might have taken over
				slog.Error("HAProxy ended and is restarted", "error", now.process.ending(),
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

// manyFormer is the number of former processes above which the time between reloads grows.
const manyFormer = 8

// interval returns the minimum time between reloads with a number of former processes. Each of them
// uses memory until its last connection ends. A user who changes a route constantly and keeps
// connections open must neither fill the memory nor end the connections of others early.
func (e *Engine) interval(former int) time.Duration {
	return e.Interval * time.Duration(max(1, former-manyFormer+1))
}

// endOldest ends the oldest former processes, and their connections, if there are too many.
func (e *Engine) endOldest(now *running) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	if extra := len(now.former) - cmp.Or(e.MaxFormer, 32); extra > 0 {
		slog.Warn("too many former HAProxy processes; the oldest and their connections end", "count", extra)
		stopAll(now.former[:extra], 0)
		now.former = slices.Delete(now.former, 0, extra)
	}
}

// begin finds the processes and the files of routes of earlier engines. Files that are no longer
// needed are removed later.
func (e *Engine) begin() (*running, error) {
	now := &running{files: map[string][]byte{}, demand: map[string]int{}}
	for _, pattern := range []string{certificatesDir + "*", authoritiesDir + "*"} {
		paths, err := filepath.Glob(filepath.Join(e.Dir, pattern))
		if err != nil {
			return nil, fmt.Errorf("look for files of routes: %w", err)
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

// before returns the processes that the next process takes over from.
func (r *running) before() []*process {
	if r.process != nil {
		return []*process{r.process}
	}
	return slices.DeleteFunc(r.orphans, func(p *process) bool { return !p.alive() })
}

// minBackoff is the delay before another start of a HAProxy that does not start.
const minBackoff = time.Second

// step brings HAProxy closer to the desired configuration. wait is the delay until the next step,
// or 0 if an event triggers it.
func (e *Engine) step(ctx context.Context, now *running) (wait time.Duration) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	config, number := e.desiredConfig()
	if config == nil {
		return 0
	}
	if now.served == nil {
		wait = max(minBackoff-time.Since(now.reloaded), time.Until(now.retry))
		if wait <= 0 && now.reload == nil {
			e.start(ctx, now, config, number)
		}
		return max(wait, 0)
	}
	all, err := now.served.change(config, e.Script != "")
	if all && err == nil {
		e.reach(number)
	}
	if err != nil && now.reload == nil { // otherwise the next process might have taken over
		slog.Warn("HAProxy cannot be changed while it runs and is reloaded", "error", err)
	}
	if now.reload != nil {
		return 0
	}
	if err := now.tidy(e.Dir); err != nil {
		slog.Warn("files of routes cannot be removed and HAProxy is reloaded", "error", err)
	}
	if all && now.served.settled() {
		return 0
	}
	interval := e.interval(len(now.former))
	due := now.reloaded.Add(interval)
	if earliest := now.served.since.Add(interval); all && !now.served.scarce() && earliest.After(due) {
		due = earliest
	}
	if now.retry.After(due) {
		due = now.retry
	}
	if wait = time.Until(due); wait <= 0 {
		e.start(ctx, now, config, number)
	}
	return max(wait, 0)
}

// makeSearchable lets every user search a directory. A directory that is searchable is left alone:
// a pod's volume can belong to another user.
func makeSearchable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	const search = 0o011
	if mode := info.Mode().Perm(); mode&search != search {
		return os.Chmod(dir, mode|search)
	}
	return nil
}
