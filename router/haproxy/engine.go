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

// Engine runs HAProxy with the newest configuration that it was given. What a HAProxy can be told while it runs, it is told at once; for the rest another one
// is started, which takes over, while the former one is told on.
type Engine struct {
	// Program is HAProxy's.
	Program string
	// Dir is the working directory of the Writer.
	Dir string
	// Interval is the least time between reloads. It grows with the number of former processes.
	Interval time.Duration
	// MaxFormer is how many former processes with connections may be left; 0 means 32.
	MaxFormer int
	// Script, if set, is run in place of HAProxy: whatever it does, HAProxy reads its configuration anew.
	Script string
	// Grace is how long requests may go on when the engine stops.
	Grace time.Duration
	// StatsTimeout is how long HAProxy may take to tell its statistics; 0 means 10 seconds.
	StatsTimeout time.Duration
	// Outlive lets HAProxy go on serving when this process is killed. The next engine of the directory takes over from it.
	Outlive bool
	// Takeover is how long a HAProxy that was started may take to serve before it is killed; 0 means a minute.
	Takeover time.Duration
	// Rejected, if set, is told why a configuration is not served, and the routes for which HAProxy refuses it, where these can be found: those that are the
	// same in the newest configuration.
	Rejected func(routes []model.ServiceAliasConfigKey, reason error)
	// Observe, if set, is told how long writing and reloading took.
	Observe func(written, reloaded time.Duration)

	mu      sync.Mutex
	wanted  *Config
	number  int           // of wanted
	reached int           // the number of the last one all of which HAProxy has served
	changed chan struct{} // holds a token when wanted has changed
	once    sync.Once

	places atomic.Pointer[map[string]string] // the spare backends that others are in, by the names of these
}

func (e *Engine) wake() chan struct{} {
	e.once.Do(func() { e.changed = make(chan struct{}, 1) })
	return e.changed
}

// Set gives the configuration to run with from now on, and returns its number, which grows from one to the next.
func (e *Engine) Set(config *Config) (number int) {
	e.mu.Lock()
	e.wanted = config
	e.number++
	number = e.number
	e.mu.Unlock()
	select {
	case e.wake() <- struct{}{}:
	default:
	}
	return number
}

// want is the configuration to run with, and its number.
func (e *Engine) want() (*Config, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wanted, e.number
}

// Reached reports whether HAProxy has served all of the configuration of a number, or of a later one.
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

// File is the path of HAProxy's configuration.
func (e *Engine) File() string { return configFile(e.Dir) }

func configFile(dir string) string { return filepath.Join(dir, "conf", "haproxy.config") }

// Serves reports whether HAProxy serves already, on behalf of an engine that was killed.
func (e *Engine) Serves() bool {
	return e.Outlive && e.Alive() == nil
}

func (e *Engine) control() runtime {
	return runtime{filepath.Join(e.Dir, "run", "haproxy.sock"), 10 * time.Second}
}

// Alive is an error when HAProxy does not answer. It costs the same however many routes there are.
func (e *Engine) Alive() error {
	_, err := e.ask("show info")
	return err
}

// Stats is HAProxy's statistics as CSV.
func (e *Engine) Stats() (string, error) {
	stats, err := e.ask("show stat")
	var places map[string]string
	if known := e.places.Load(); known != nil {
		places = *known
	}
	return named(stats, places), err
}

func (e *Engine) ask(command string) (string, error) {
	control := e.control()
	control.timeout = cmp.Or(e.StatsTimeout, control.timeout)
	return control.ask(command)
}

// Page is the socket of HAProxy's page of statistics.
func (e *Engine) Page() string { return filepath.Join(e.Dir, "run", "stats.sock") }

// running is what an engine has brought about.
type running struct {
	process  *process
	left     []*process // by an engine that was killed, until they are taken over from
	served   *served    // by the process; nil before it serves
	files    map[string][]byte
	tidied   map[string][]byte // those of routes that are there
	reloaded time.Time
	reload   *reload        // that goes on; nil when none does
	former   []*process     // those that still have connections
	demand   map[string]int // spare backends to have, by shape
	number   int            // of reloads
	failed   int            // reloads in a row
	retry    time.Time      // nothing is reloaded before
}

// Run runs HAProxy from the first configuration until ctx ends. ready is called when HAProxy serves. A HAProxy that ends is started again.
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
				slog.Error("the router's configuration is not as it should be", "error", err, "again in", time.Until(now.retry).Round(time.Second))
			}
		case <-ended:
			if now.reload == nil { // otherwise the next one may have taken over
				slog.Error("HAProxy ended and is started again", "error", now.process.ending(), "output", now.process.output.String())
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

// interval is the least time between reloads with a number of former processes. Each of them takes memory until its last
// connection ends. A user who changes a route all the time and keeps connections open shall neither fill the
// memory nor soon end the connections of others.
func (e *Engine) interval(former int) time.Duration {
	return e.Interval * time.Duration(max(1, former-manyFormer+1))
}

// endOldest ends the oldest former processes, and their connections, if there are too many.
func (e *Engine) endOldest(now *running) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	if extra := len(now.former) - cmp.Or(e.MaxFormer, 32); extra > 0 {
		slog.Warn("connections over former processes of HAProxy are ended, since there are too many", "processes", extra)
		stopAll(now.former[:extra], 0)
		now.former = slices.Delete(now.former, 0, extra)
	}
}

// begin finds what there is in the directory: processes, and files of routes, which are removed when they are not needed.
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
		now.left, err = left(e.Dir)
	}
	return now, err
}

// before are the processes that the next one takes over from.
func (r *running) before() []*process {
	if r.process != nil {
		return []*process{r.process}
	}
	return slices.DeleteFunc(r.left, func(p *process) bool { return !p.alive() })
}

// again is how long a HAProxy that does not start is left alone.
const again = time.Second

// step brings HAProxy nearer to the wanted configuration; wait is when to look again, or 0 when something will happen before.
func (e *Engine) step(ctx context.Context, now *running) (wait time.Duration) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	config, number := e.want()
	if config == nil {
		return 0
	}
	if now.served == nil {
		wait = max(again-time.Since(now.reloaded), time.Until(now.retry))
		if wait <= 0 && now.reload == nil {
			e.start(ctx, now, config, number)
		}
		return max(wait, 0)
	}
	all, err := now.served.change(config, e.Script != "")
	if all && err == nil {
		e.reach(number)
	}
	if err != nil && now.reload == nil { // otherwise the next one may have taken over
		slog.Warn("HAProxy is changed by a reload", "error", err)
	}
	if now.reload != nil {
		return 0
	}
	if err := now.tidy(e.Dir); err != nil {
		slog.Warn("the files of routes are brought up to date by a reload", "error", err)
	}
	if all && now.served.settled() {
		return 0
	}
	interval := e.interval(len(now.former))
	due := now.reloaded.Add(interval)
	if soon := now.served.since.Add(interval); all && !now.served.scarce() && soon.After(due) {
		due = soon
	}
	if now.retry.After(due) {
		due = now.retry
	}
	if wait = time.Until(due); wait <= 0 {
		e.start(ctx, now, config, number)
	}
	return max(wait, 0)
}

// makeSearchable lets every user search a directory. A directory that is searchable is left alone: a
// pod's volume can belong to another user.
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
