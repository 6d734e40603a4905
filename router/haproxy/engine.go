package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Engine runs HAProxy with the newest configuration that it was given.
type Engine struct {
	// Program is HAProxy's.
	Program string
	// Dir is the working directory of the Writer.
	Dir string
	// Interval is the least time between reloads.
	Interval time.Duration
	// Script, if set, is run in place of HAProxy: whatever it does, HAProxy reads its configuration anew.
	Script string
	// Grace is how long requests may go on when the engine stops.
	Grace time.Duration
	// StatsTimeout is how long HAProxy may take to tell its statistics; 0 means 10 seconds.
	StatsTimeout time.Duration
	// Outlive lets HAProxy go on serving when this process is killed. The next engine of the directory takes over from it.
	Outlive bool
	// Rejected, if set, is told the configuration that HAProxy did not take, with its reason.
	Rejected func(*Config, error)
	// Observe, if set, is told how long writing and reloading took.
	Observe func(written, reloaded time.Duration)

	mu      sync.Mutex
	wanted  *Config
	changed chan struct{} // holds a token when wanted has changed
	once    sync.Once
}

func (e *Engine) wake() chan struct{} {
	e.once.Do(func() { e.changed = make(chan struct{}, 1) })
	return e.changed
}

// Set gives the configuration to run with from now on.
func (e *Engine) Set(config *Config) {
	e.mu.Lock()
	e.wanted = config
	e.mu.Unlock()
	select {
	case e.wake() <- struct{}{}:
	default:
	}
}

func (e *Engine) want() *Config {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wanted
}

// File is the path of HAProxy's configuration.
func (e *Engine) File() string { return configFile(e.Dir) }

func configFile(dir string) string { return filepath.Join(dir, "conf", "haproxy.config") }

// Serves reports whether HAProxy serves already, on behalf of an engine that was killed.
func (e *Engine) Serves() bool {
	_, err := e.Stats()
	return e.Outlive && err == nil
}

func (e *Engine) control() runtime {
	return runtime{filepath.Join(e.Dir, "run", "haproxy.sock"), 10 * time.Second}
}

// Stats is HAProxy's statistics as CSV.
func (e *Engine) Stats() (string, error) {
	control := e.control()
	control.timeout = cmp.Or(e.StatsTimeout, control.timeout)
	return control.ask("show stat")
}

// Page is the socket of HAProxy's page of statistics.
func (e *Engine) Page() string { return filepath.Join(e.Dir, "run", "stats.sock") }

// running is what an engine has brought about.
type running struct {
	process  *process
	left     []*process // by an engine that was killed, until they are taken over from
	config   *Config
	files    map[string][]byte
	reloaded time.Time
	former   []*process        // those that still have connections
	parked   map[string]Server // servers out of use that could not be deleted yet, by backend and name
}

// Run runs HAProxy from the first configuration until ctx ends. ready is called when HAProxy serves. A HAProxy that ends is started again.
func (e *Engine) Run(ctx context.Context, ready func()) error {
	for _, dir := range []string{"conf", "run", "router/certs", "router/cacerts"} {
		if err := os.MkdirAll(filepath.Join(e.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("make directory of the router: %w", err)
		}
	}
	now, err := e.begin()
	if err != nil {
		return err
	}
	defer func() { stopAll(slices.Concat(now.former, now.before()), e.Grace) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var ended <-chan struct{}
		if now.process != nil {
			ended = now.process.ended
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake():
		case <-timer.C:
		case <-ended:
			slog.Error("HAProxy ended and is started again", "error", now.process.ending(), "output", now.process.output.String())
			now.process, now.config, now.parked = nil, nil, map[string]Server{}
		}
		wait, err := e.step(ctx, now)
		if err != nil && ctx.Err() == nil {
			slog.Error("the router's configuration is not as it should be", "error", err)
			wait = max(wait, again)
		}
		if now.config != nil {
			ready()
			ready = func() {}
		}
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// begin finds what there is in the directory: processes, and files of routes, which are removed when they are not needed.
func (e *Engine) begin() (*running, error) {
	now := &running{parked: map[string]Server{}, files: map[string][]byte{}}
	for _, pattern := range []string{"router/certs/*", "router/cacerts/*"} {
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

// step brings HAProxy nearer to the wanted configuration; wait is when to look again.
func (e *Engine) step(ctx context.Context, now *running) (wait time.Duration, err error) {
	now.former = slices.DeleteFunc(now.former, func(p *process) bool { return !p.alive() })
	config := e.want()
	if config == nil || config == now.config {
		return 0, nil
	}
	if early := again - time.Since(now.reloaded); now.config == nil && early > 0 {
		return early, nil
	}
	if now.config != nil {
		same, err := e.change(now, config)
		if err != nil {
			slog.Warn("servers are changed by a reload", "error", err)
		} else if same {
			return 0, nil
		}
		if early := e.Interval - time.Since(now.reloaded); early > 0 {
			return early, nil
		}
	}
	return 0, e.reload(ctx, now, config)
}

// change tells the running HAProxy about servers. same says that nothing else is different.
func (e *Engine) change(now *running, config *Config) (same bool, err error) {
	if e.Script != "" || config.whole != "" || now.config.whole != "" {
		return config.Text() == now.config.Text() && maps.EqualFunc(now.files, config.Files, slices.Equal), nil
	}
	same = config.Frame == now.config.Frame && maps.EqualFunc(now.files, config.Files, slices.Equal) && len(config.Backends) == len(now.config.Backends)
	wanted := map[string]Backend{}
	for _, backend := range config.Backends {
		wanted[backend.Name] = backend
	}
	var commands []string
	parked := maps.Clone(now.parked)
	known := *now.config
	known.Backends = slices.Clone(known.Backends)
	for i, backend := range known.Backends {
		then, there := wanted[backend.Name]
		if !there || then.Text != backend.Text {
			same = false
			continue
		}
		changes, left, possible := update(backend, then, parked)
		if !possible {
			same = false
			continue
		}
		for _, server := range then.Servers {
			delete(parked, then.Name+"/"+server.Name)
		}
		maps.Copy(parked, left)
		commands = append(commands, changes...)
		known.Backends[i] = then
	}
	if err := e.control().tell(commands); err != nil {
		return false, err
	}
	now.parked = e.control().remove(parked)
	now.config = &known
	if same {
		now.config = config
	}
	return same, nil
}

// reload starts a HAProxy on the configuration, which takes over from the one before.
func (e *Engine) reload(ctx context.Context, now *running, config *Config) error {
	began := time.Now()
	now.reloaded = began
	if err := writeFiles(e.Dir, now.files, config.Files); err != nil {
		return err
	}
	if err := os.WriteFile(e.File(), []byte(config.Text()), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	written := time.Now()
	before := now.files
	if now.files = maps.Clone(before); now.files == nil {
		now.files = map[string][]byte{}
	}
	maps.Copy(now.files, config.Files)
	if err := e.replace(ctx, now); err != nil {
		if e.Rejected != nil {
			e.Rejected(config, err)
		}
		return err
	}
	removeFiles(e.Dir, before, config.Files)
	now.files, now.config, now.parked = config.Files, config, map[string]Server{}
	if e.Observe != nil {
		e.Observe(written.Sub(began), time.Since(written))
	}
	if e.Script != "" || config.whole != "" {
		return nil
	}
	return e.control().tell(unchecked(config))
}

func (e *Engine) replace(ctx context.Context, now *running) error {
	if e.Script != "" {
		command := exec.CommandContext(ctx, e.Script)
		command.Dir = e.Dir
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w: %s", e.Script, err, strings.TrimSpace(string(output)))
		}
		return nil
	}
	before := now.before()
	if now.process == nil && !e.Serves() { // what is left has given its sockets away, or is no use
		stopAll(before, 0)
		before = nil
	}
	next, err := start(e.Program, e.File(), e.control().socket, e.Outlive, before...)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("HAProxy does not answer"))
	defer cancel()
	if err := next.waitReady(limited, e.control()); err != nil {
		if next.alive() {
			next.stop(0)
		}
		return err
	}
	now.former = append(now.former, before...)
	now.process, now.left = next, nil
	return nil
}
