package platform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/config"
)

// adjustment is something that follows a change of the configuration while the control plane runs.
type adjustment struct {
	// keys are the settings that it follows, each with all below it.
	keys []string
	// prepare makes what the configuration asks for; apply lets it count.
	prepare func(next *config.Config) (apply func(), err error)
}

// adjust notes that some settings can change while the control plane runs.
func (h *host) adjust(prepare func(*config.Config) (func(), error), keys ...string) {
	h.adjusted = append(h.adjusted, adjustment{keys, prepare})
}

// configuration follows the configuration files.
func (h *host) configuration() (Component, error) {
	files := []string{config.MasterFile(h.dataDir), config.NodeFile(h.dataDir)}
	if h.file != "" {
		files = append(files, h.file)
	}
	f := &follower{
		load:  func() (*config.Config, error) { return config.Load(h.dataDir, h.file) },
		files: files, start: h.Config, adjusted: h.adjusted, period: followPeriod, note: func(string) {},
	}
	f.began = f.look()
	if next, err := f.load(); err == nil {
		if changed, err := config.Changes(f.start, next); err == nil && len(changed) == 0 {
			f.seen = f.began // otherwise they have changed since this process read them
		}
	}
	return f, nil
}

// followPeriod is how often the files are looked at.
const followPeriod = time.Second

// retryLooks is after how many looks a configuration is tried again that could not be used: the cause may lie in another file, such as a certificate.
const retryLooks = 10

// follower is the part that lets a changed configuration count. A file counts when two looks in a row find it the same, so that one that is just
// being written is not read. All adjustments are prepared before the first is applied: a configuration counts as a whole or not at all.
type follower struct {
	load     func() (*config.Config, error)
	files    []string
	start    *config.Config // what everything else of this host runs with
	adjusted []adjustment
	period   time.Duration
	note     func(string)

	began []look // what was there at the start
	seen  []look // what was read last

	refused string // why that could not be used; empty when it could
	looks   int    // since it was tried
}

// Name is the part's.
func (f *follower) Name() string { return "configuration" }

// Notes gets the function that tells what does not count yet.
func (f *follower) Notes(note func(string)) { f.note = note }

// Run follows the files until ctx ends.
func (f *follower) Run(ctx context.Context, ready func()) error {
	ready()
	tick := time.NewTicker(f.period)
	defer tick.Stop()
	var last []look
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := f.look()
		f.looks++
		switch {
		case !slices.Equal(now, last):
		case !slices.Equal(now, f.seen):
			f.seen, f.refused = now, ""
			f.follow()
		case f.refused != "" && f.looks >= retryLooks:
			f.follow()
		}
		last = now
	}
}

// follow reads the files and says what came of it.
func (f *follower) follow() {
	rest, err := f.apply()
	before := f.refused
	f.looks, f.refused = 0, ""
	if err != nil {
		f.refused = err.Error()
	}
	switch {
	case err != nil && f.refused == before: // which was said
	case err != nil:
		slog.Error("the changed configuration cannot be used; the former one stays", "error", err)
		f.note("the changed configuration cannot be used, and the former one stays: " + err.Error())
	case len(rest) > 0:
		slog.Warn("the changed configuration counts; some settings do at the next start only", "keys", strings.Join(rest, ", "))
		f.note("changed settings that count at the next start only: " + strings.Join(rest, ", "))
	default:
		slog.Info("the changed configuration counts")
		f.note("")
	}
}

// apply adjusts what can be and returns the changed settings that need a restart.
func (f *follower) apply() (rest []string, err error) {
	for i, file := range f.files {
		if f.seen[i] == (look{}) && f.began[i] != (look{}) {
			return nil, fmt.Errorf("%s is gone", file)
		}
	}
	next, err := f.load()
	if err != nil {
		return nil, err
	}
	changed, err := config.Changes(f.start, next)
	if err != nil {
		return nil, err
	}
	var applies []func()
	var problems []error
	var live []string
	for _, one := range f.adjusted {
		apply, err := one.prepare(next)
		problems, applies, live = append(problems, err), append(applies, apply), append(live, one.keys...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	for _, apply := range applies {
		apply()
	}
	return slices.DeleteFunc(changed, func(key string) bool { return config.Below(key, live) }), nil
}

// look is what tells one state of a file from another; zero for a file that is not there.
type look struct {
	inode    uint64
	size     int64
	modified time.Time
}

func (f *follower) look() []look {
	looks := make([]look, len(f.files))
	for i, file := range f.files {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		looks[i].size = -1 // there, though it cannot be seen
		if err == nil {
			looks[i] = look{size: info.Size(), modified: info.ModTime()}
			if system, ok := info.Sys().(*syscall.Stat_t); ok {
				looks[i].inode = system.Ino
			}
		}
	}
	return looks
}
