package haproxy

import (
	"cmp"
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
	// Interval is the minimum time between reloads. It grows with the number of replaced processes.
	Interval time.Duration
	// MaxFormer limits the replaced processes that still have connections. The default is 32.
	MaxFormer int
	// Script, if set, runs instead of a reload. It must make HAProxy read its configuration again.
	Script string
	// ShutdownTimeout is the time for open requests when the engine stops.
	ShutdownTimeout time.Duration
	// StatsTimeout limits a request for statistics. The default is 10 seconds.
	StatsTimeout time.Duration
	// Outlive keeps HAProxy running if this process is killed. The next engine of the directory
	// takes over from it.
	Outlive bool
	// TakeoverTimeout limits the time until a new HAProxy serves. Then it is killed. The default is a
	// minute.
	TakeoverTimeout time.Duration
	// Rejected, if set, is called when a configuration is not served. routes are the routes for
	// which HAProxy rejects it, if they can be found, and if they are unchanged in the newest
	// configuration.
	Rejected func(routes []model.ServiceAliasConfigKey, reason error)
	// Observe, if set, is called after a reload with the durations of writing and of reloading.
	Observe func(write, reload time.Duration)

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
	_, err := e.send("show info")
	return err
}

// Stats returns HAProxy's statistics as CSV.
func (e *Engine) Stats() (string, error) {
	stats, err := e.send("show stat")
	var places map[string]string
	if published := e.places.Load(); published != nil {
		places = *published
	}
	return named(stats, places), err
}

func (e *Engine) send(command string) (string, error) {
	control := e.control()
	control.timeout = cmp.Or(e.StatsTimeout, control.timeout)
	return control.send(command)
}

// Page returns the path of the socket that serves HAProxy's statistics page.
func (e *Engine) Page() string { return filepath.Join(e.Dir, "run", "stats.sock") }

// manyFormer is the number of replaced processes above which the time between reloads grows.
const manyFormer = 8

// interval returns the minimum time between reloads with a number of replaced processes. Each of
// them uses memory until its last connection ends. A user who changes a route constantly and keeps
// connections open must neither fill the memory nor end the connections of others early.
func (e *Engine) interval(former int) time.Duration {
	return e.Interval * time.Duration(max(1, former-manyFormer+1))
}

// endOldest ends the oldest replaced processes, and their connections, if there are too many.
func (e *Engine) endOldest(now *running) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	if extra := len(now.former) - cmp.Or(e.MaxFormer, 32); extra > 0 {
		slog.Warn("too many previous HAProxy processes; the oldest ones end with their connections", "count", extra)
		stopAll(now.former[:extra], 0)
		now.former = slices.Delete(now.former, 0, extra)
	}
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
