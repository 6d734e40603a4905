package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/router/model"
)

// reload starts an HAProxy process that replaces the current process.
type reload struct {
	config *Config
	number int // number of the configuration
	spares map[string][]string
	files  map[string][]byte // files of the configuration; valid after done
	socket string            // socket that only the next process uses
	before []*process
	next   *process // the next process; valid after done
	// rejected contains the routes that cause HAProxy to reject the configuration. It is valid
	// after done.
	rejected  []model.ServiceAliasConfigKey
	durations [2]time.Duration
	cancel    func()
	done      chan error // receives the result once
}

// start starts a reload in the background. number identifies the configuration.
func (e *Engine) start(ctx context.Context, now *running, config *Config, number int) {
	now.reloaded = time.Now()
	now.number++
	limited, cancel := context.WithTimeoutCause(ctx, e.takeover(),
		fmt.Errorf("HAProxy did not respond within %s after its start", e.takeover()))
	r := &reload{
		config: config, number: number, socket: filepath.Join(e.Dir, "run", fmt.Sprintf("own-%d.sock", now.number%2)), before: now.before(),
		cancel: cancel, done: make(chan error, 1),
	}
	var spare string
	if e.Script == "" && config.whole == "" {
		r.spares, spare = now.spare(config, e.Dir)
	}
	had, serving := now.files, now.process != nil // these do not change during the reload
	now.reload = r
	go func() {
		defer cancel()
		err := e.replace(limited, r, spare, had, serving)
		if rejection := (*startError)(nil); errors.As(err, &rejection) {
			r.rejected = e.findRejected(ctx, config, err.Error())
		}
		r.done <- err
	}()
}

// replace writes the files and starts the next HAProxy process, or runs the script.
func (e *Engine) replace(ctx context.Context, r *reload, spare string, had map[string][]byte,
	serving bool) error {
	startTime := time.Now()
	r.files = r.config.files()
	text := r.config.Text()
	if r.spares != nil {
		r.files[spareTable] = nil
	}
	if e.Script == "" {
		text += spare + "\nglobal\n  stats socket " + r.socket + " mode 600 level admin\n"
	}
	if err := writeFiles(e.Dir, had, r.files); err != nil {
		return err
	}
	if err := os.WriteFile(e.File(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	written := time.Now()
	defer func() { r.durations = [2]time.Duration{written.Sub(startTime), time.Since(written)} }()
	if e.Script != "" {
		command := exec.CommandContext(ctx, e.Script)
		command.Dir = e.Dir
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w: %s", e.Script, err, strings.TrimSpace(string(output)))
		}
		return nil
	}
	if !serving && !e.Serves() { // no previous process can hand over its sockets
		stopAll(r.before, 0)
		r.before = nil
	}
	socket := ""
	if len(r.before) > 0 {
		socket = e.control().socket
	}
	next, err := start(e.Program, e.Dir, e.File(), socket, e.Outlive)
	if err != nil {
		return err
	}
	if len(r.before) > 0 {
		next.lowerPriority()
	}
	if err = next.waitReady(ctx, runtime{r.socket, e.control().timeout}); err != nil {
		next.kill() // the previous processes continue to serve
		return err
	}
	next.restorePriority()
	for _, former := range r.before {
		former.leave()
	}
	r.next = next
	return nil
}

// maxBackoff is the maximum backoff between reloads.
const maxBackoff = time.Minute

// hold delays the next reload after a failure, with exponential backoff. If managed is set, the
// router is about to exclude the routes that caused the failure, so the backoff restarts at
// minBackoff.
func (r *running) hold(managed bool) {
	if managed {
		r.failed = 0
	}
	r.retry = time.Now().Add(min(minBackoff<<r.failed, maxBackoff))
	r.failed = min(r.failed+1, 10)
}

// takeover returns the time limit for a new HAProxy process to become ready. During this time, the
// old process serves requests and receives commands.
func (e *Engine) takeover() time.Duration { return cmp.Or(e.TakeoverTimeout, time.Minute) }

// finish handles the result of a reload.
func (e *Engine) finish(now *running, err error) error {
	r := now.reload
	now.reload = nil
	if err != nil {
		maps.Copy(now.files, r.files) // the files of both configurations might exist
		now.remaining = nil
		if errors.Is(err, context.Canceled) {
			return err
		}
		now.hold(len(r.rejected) > 0)
		if e.Rejected != nil {
			desired, _ := e.desiredConfig() // a user might have fixed the route already
			unchanged := slices.DeleteFunc(r.rejected, func(route model.ServiceAliasConfigKey) bool {
				return !r.config.alike(desired, route)
			})
			e.Rejected(unchanged, err)
		}
		return err
	}
	now.failed, now.retry = 0, time.Time{}
	removeFiles(e.Dir, now.files, r.files)
	now.files, now.remaining = maps.Clone(r.files), r.config.Files
	if r.next != nil {
		now.former = append(now.former, r.before...)
		e.endOldest(now)
		now.process, now.orphans = r.next, nil
	}
	now.served = &served{
		control: runtime{r.socket, e.control().timeout}, dir: e.Dir, config: r.config, files: r.files, tables: r.config.Tables, spares: r.spares,
		places: map[string]string{}, requested: map[string]string{}, parked: map[string]Server{}, damaged: map[string]bool{},
	}
	e.places.Store(nil)
	now.served.publish = &e.places
	e.reach(r.number)
	if e.Observe != nil {
		e.Observe(r.durations[0], r.durations[1])
	}
	return nil
}
