// Package reload applies changes to the configuration files while the control plane is running.
package reload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/config"
)

// Adjustment applies changes to some settings without a restart.
type Adjustment struct {
	// Keys lists the settings. Each setting includes all settings below it.
	Keys []string
	// Prepare creates the objects that a configuration requires. The returned apply function puts them
	// into effect.
	Prepare func(next *config.Config) (apply func(), err error)
}

// defaultInterval is the default interval between checks of the files.
const defaultInterval = time.Second

// retryChecks is the number of checks after which the Reloader retries a rejected configuration. A
// retry can succeed because the cause of the error might have been in another file, such as a
// certificate.
const retryChecks = 10

// Reloader applies changes to configuration files. It reads a file only when two consecutive checks
// find the same state, so that it does not read a file that is being written. It prepares all
// adjustments before it applies the first adjustment, so a configuration takes effect as a whole or
// not at all.
type Reloader struct {
	// Load reads the configuration.
	Load func() (*config.Config, error)
	// Files lists the files that Load reads.
	Files []string
	// Start is the configuration that the process started with.
	Start *config.Config
	// Adjustments lists the adjustments that can apply a change without a restart.
	Adjustments []Adjustment
	// Interval is the interval between checks. The default is one second.
	Interval time.Duration

	note func(string)

	startState []fileState
	read       []fileState // state of the files that were read last

	rejected string // error of the rejected configuration
	checks   int    // number of checks since the configuration was rejected
}

// Name returns the component's name.
func (r *Reloader) Name() string { return "configuration" }

// Notes sets the function that is called with messages about settings that are not in effect.
func (r *Reloader) Notes(note func(string)) { r.note = note }

// Init records the state of the files. It must be called immediately after the configuration has
// been read, so that later changes are detected.
func (r *Reloader) Init() {
	r.startState = stateOf(r.Files)
	next, err := r.Load()
	if err != nil {
		return
	}
	if changed, err := config.Changes(r.Start, next); err == nil && len(changed) == 0 {
		r.read = r.startState // otherwise, the files have changed since the start
	}
}

// Run checks the files until ctx is done.
func (r *Reloader) Run(ctx context.Context, ready func()) error {
	ready()
	interval := r.Interval
	if interval == 0 {
		interval = defaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last []fileState
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		current := stateOf(r.Files)
		r.checks++
		switch {
		case !slices.Equal(current, last):
		case !slices.Equal(current, r.read):
			r.read, r.rejected = current, ""
			r.reload()
		case r.rejected != "" && r.checks >= retryChecks:
			r.reload()
		}
		last = current
	}
}

// reload applies the configuration in the files and reports the result.
func (r *Reloader) reload() {
	pending, err := r.apply()
	previous := r.rejected
	r.checks, r.rejected = 0, ""
	if err != nil {
		r.rejected = err.Error()
	}
	switch {
	case err != nil && r.rejected == previous: // the error has already been reported
	case err != nil:
		slog.Error("rejected changed configuration; the previous configuration remains in effect", "error", err)
		r.report("the changed configuration was rejected, so the previous configuration remains in effect: " + err.Error())
	case len(pending) > 0:
		keys := strings.Join(pending, ", ")
		slog.Warn("applied changed configuration; some settings need a restart", "keys", keys)
		r.report("changed settings that take effect at the next start: " + keys)
	default:
		slog.Info("applied changed configuration")
		r.report("")
	}
}

func (r *Reloader) report(note string) {
	if r.note != nil {
		r.note(note)
	}
}

// apply applies all adjustments. pending lists the changed settings that require a restart.
func (r *Reloader) apply() (pending []string, err error) {
	for i, file := range r.Files {
		if r.read[i] == (fileState{}) && r.startState[i] != (fileState{}) {
			return nil, fmt.Errorf("%s does not exist", file)
		}
	}
	next, err := r.Load()
	if err != nil {
		return nil, err
	}
	changed, err := config.Changes(r.Start, next)
	if err != nil {
		return nil, err
	}
	var applies []func()
	var errs []error
	var keys []string
	for _, adjustment := range r.Adjustments {
		apply, err := adjustment.Prepare(next)
		errs, applies, keys = append(errs, err), append(applies, apply), append(keys, adjustment.Keys...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, apply := range applies {
		apply()
	}
	return slices.DeleteFunc(changed, func(key string) bool { return config.Below(key, keys) }), nil
}
