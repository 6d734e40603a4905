package haproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// reload is the start of a HAProxy that takes over.
type reload struct {
	config *Config
	number int // of the configuration
	spares map[string][]string
	files  map[string][]byte // that the configuration needs
	socket string            // of the next process alone
	before []*process
	next   *process // valid when done has told its end
	took   [2]time.Duration
	cancel func()
	done   chan error // tells the end once
}

// start begins a reload.
func (e *Engine) start(ctx context.Context, now *running, config *Config, number int) {
	now.reloaded = time.Now()
	now.number++
	limited, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("HAProxy does not answer"))
	r := &reload{
		config: config, number: number, files: config.files(), socket: filepath.Join(e.Dir, "run", fmt.Sprintf("own-%d.sock", now.number%2)), before: now.before(),
		cancel: cancel, done: make(chan error, 1),
	}
	var spare string
	if e.Script == "" && config.whole == "" {
		r.spares, spare = now.spare(config)
	}
	text := config.Text() + spare + "\nglobal\n  stats socket " + r.socket + " mode 600 level admin\n"
	if e.Script != "" {
		text = config.Text()
	}
	had, serving := now.files, now.process != nil
	now.files = maps.Clone(had) // whatever becomes of it, files of both may be there from now on
	maps.Copy(now.files, r.files)
	now.reload = r
	go func() {
		defer cancel()
		r.done <- e.replace(limited, r, text, had, serving)
	}()
}

// replace writes the files and runs the next HAProxy, or the script.
func (e *Engine) replace(ctx context.Context, r *reload, text string, had map[string][]byte, serving bool) error {
	began := time.Now()
	if err := writeFiles(e.Dir, had, r.files); err != nil {
		return err
	}
	if err := os.WriteFile(e.File(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	written := time.Now()
	defer func() { r.took = [2]time.Duration{written.Sub(began), time.Since(written)} }()
	if e.Script != "" {
		command := exec.CommandContext(ctx, e.Script)
		command.Dir = e.Dir
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w: %s", e.Script, err, strings.TrimSpace(string(output)))
		}
		return nil
	}
	if !serving && !e.Serves() { // what is left has given its sockets away, or is no use
		stopAll(r.before, 0)
		r.before = nil
	}
	next, err := start(e.Program, e.File(), e.control().socket, e.Outlive, r.before...)
	if err != nil {
		return err
	}
	if err = next.waitReady(ctx, runtime{r.socket, e.control().timeout}); err != nil {
		if next.alive() {
			next.stop(0)
		}
		return err
	}
	r.next = next
	return nil
}

// finish takes what a reload has come to.
func (e *Engine) finish(now *running, err error) error {
	r := now.reload
	now.reload = nil
	if err != nil {
		if e.Rejected != nil && !errors.Is(err, context.Canceled) {
			e.Rejected(r.config, err)
		}
		return err
	}
	removeFiles(e.Dir, now.files, r.files)
	now.files = r.files
	if r.next != nil {
		now.former = append(now.former, r.before...)
		now.process, now.left = r.next, nil
	}
	now.served = &served{
		control: runtime{r.socket, e.control().timeout}, dir: e.Dir, config: r.config, files: r.files, tables: r.config.Tables, spares: r.spares,
		places: map[string]string{}, asked: map[string]string{}, parked: map[string]Server{},
	}
	e.reach(r.number)
	if e.Observe != nil {
		e.Observe(r.took[0], r.took[1])
	}
	return nil
}
