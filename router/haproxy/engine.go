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

// Engine runs HAProxy with the newest configuration. If the runtime interface supports a change,
// Engine applies the change to the running process. Otherwise, it starts a new process, which takes
// over. See the diagram in the package documentation.
type Engine struct {
	// Program is the path to the HAProxy program.
	Program string
	// Dir is the working directory. It must be the same as the Writer's.
	Dir string
	// Interval is the minimum time between reloads. The effective interval increases with the
	// number of replaced processes that are still running.
	Interval time.Duration
	// MaxFormer is the maximum number of replaced processes that still have connections. The
	// default is 32.
	MaxFormer int
	// Script, if set, runs instead of a reload. It must make HAProxy reread its configuration.
	Script string
	// ShutdownTimeout limits how long open requests can continue when the engine stops.
	ShutdownTimeout time.Duration
	// StatsTimeout is the timeout for a statistics request. The default is 10 seconds.
	StatsTimeout time.Duration
	// Outlive keeps HAProxy running if this process is killed. The next engine in the same
	// directory takes over from it.
	Outlive bool
	// TakeoverTimeout limits how long a new HAProxy process can take to become ready. After this
	// time, the engine kills the process. The default is one minute.
	TakeoverTimeout time.Duration
	// Rejected, if set, is called when a configuration is not served. routes contains the routes
	// that cause HAProxy to reject the configuration. It contains only routes that could be
	// identified and that are unchanged in the newest configuration.
	Rejected func(routes []model.ServiceAliasConfigKey, reason error)
	// Observe, if set, is called after a reload. It receives how long it took to write the
	// configuration and to reload.
	Observe func(write, reload time.Duration)

	mu      sync.Mutex
	desired *Config
	number  int           // number of the desired configuration
	reached int           // number of the newest configuration that was served completely
	changed chan struct{} // receives a value when desired changes
	once    sync.Once

	places atomic.Pointer[map[string]string] // maps a backend to the spare backend that serves it
}

func (e *Engine) wake() chan struct{} {
	e.once.Do(func() { e.changed = make(chan struct{}, 1) })
	return e.changed
}

// Set sets the desired configuration and returns its number. Each call increases the number.
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

// Reached reports whether HAProxy has ever served the complete configuration with the given number,
// or a later one.
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

// File returns the path to HAProxy's configuration file.
func (e *Engine) File() string { return configFile(e.Dir) }

func configFile(dir string) string { return filepath.Join(dir, "conf", "haproxy.config") }

// Serves reports whether an HAProxy process that a killed engine left running is still serving.
func (e *Engine) Serves() bool {
	return e.Outlive && e.Alive() == nil
}

func (e *Engine) control() runtime {
	return runtime{filepath.Join(e.Dir, "run", "haproxy.sock"), 10 * time.Second}
}

// Alive returns an error if HAProxy does not respond. The cost of the check does not depend on the
// number of routes.
func (e *Engine) Alive() error {
	_, err := e.send("show info")
	return err
}

// Stats returns HAProxy's statistics in CSV format.
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

// Page returns the path to the socket that serves HAProxy's statistics page.
func (e *Engine) Page() string { return filepath.Join(e.Dir, "run", "stats.sock") }

// manyFormer is the number of replaced processes above which the reload interval increases.
const manyFormer = 8

// interval returns the minimum time between reloads for a given number of replaced processes that
// are still running. Each of these processes uses memory until its last connection ends. A user
// could change a route constantly and keep connections open. This must neither exhaust the memory
// nor cause the connections of other users to be closed early.
func (e *Engine) interval(former int) time.Duration {
	return e.Interval * time.Duration(max(1, former-manyFormer+1))
}

// endOldest stops the oldest replaced processes if there are too many. This closes their
// connections.
func (e *Engine) endOldest(now *running) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	if extra := len(now.former) - cmp.Or(e.MaxFormer, 32); extra > 0 {
		slog.Warn("too many previous HAProxy processes; stopping the oldest ones, which closes their connections", "count", extra)
		stopAll(now.former[:extra], 0)
		now.former = slices.Delete(now.former, 0, extra)
	}
}

// makeSearchable allows every user to search a directory. It does not change the mode of a
// directory that is already searchable. Such a directory can be a pod's volume, which can belong to
// another user.
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
