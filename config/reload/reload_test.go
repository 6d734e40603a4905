package reload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// fixture contains a configuration file, a Reloader that is running, and the results of the
// Reloader's adjustments.
type fixture struct {
	t    *testing.T
	file string

	mu            sync.Mutex
	message, note string
	broken        bool // true if a file that the configuration refers to is damaged
}

const header = "apiVersion: v1\nkind: MasterConfig\n"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, file: filepath.Join(t.TempDir(), "master-config.yaml")}
	f.write("projectConfig: {projectRequestMessage: first}")
	load := func() (*config.Config, error) { return config.Load("/data", f.file) }
	start, err := load()
	if err != nil {
		t.Fatal(err)
	}
	reloader := &Reloader{
		Load: load, Files: []string{f.file}, Start: start, Interval: 5 * time.Millisecond,
		Adjustments: []Adjustment{
			{[]string{"projectConfig.projectRequestMessage"}, f.prepareMessage},
			{[]string{"projectConfig.defaultNodeSelector"}, f.prepareSelector},
		},
	}
	reloader.Init()
	reloader.Notes(func(note string) { f.mu.Lock(); defer f.mu.Unlock(); f.note = note })
	componenttest.Run(t, reloader.Run)
	return f
}

func (f *fixture) prepareMessage(next *config.Config) (func(), error) {
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.message = next.Master.ProjectConfig.ProjectRequestMessage
	}, nil
}

func (f *fixture) prepareSelector(next *config.Config) (func(), error) {
	if next.Master.ProjectConfig.DefaultNodeSelector == "bad" {
		return nil, errors.New("the selector is invalid")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return nil, errors.New("a certificate is damaged")
	}
	return func() {}, nil
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.file, []byte(header+text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) state() (message, note string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.message, f.note
}

func (f *fixture) waitMessage(want string) {
	f.t.Helper()
	eventually.Equal(f.t, "message", func() string { message, _ := f.state(); return message }, want)
}

func (f *fixture) waitNote(text string) {
	f.t.Helper()
	eventually.True(f.t, "note with "+text, func() bool { _, note := f.state(); return strings.Contains(note, text) })
}

func (f *fixture) waitNoNote() {
	f.t.Helper()
	eventually.Equal(f.t, "note", func() string { _, note := f.state(); return note }, "")
}

func TestChangedConfigurationTakesEffect(t *testing.T) {
	f := newFixture(t)
	f.write("projectConfig: {projectRequestMessage: second}")
	f.waitMessage("second")

	f.write("projectConfig: {projectRequestMessage: third}\nroutingConfig: {subdomain: apps.example.com}")
	f.waitNote("at the next start: routingConfig.subdomain")
	if message, _ := f.state(); message != "third" {
		t.Errorf("the message is %q", message)
	}
	f.write("projectConfig: {projectRequestMessage: third}")
	f.waitNoNote()
}

func TestInvalidConfigurationChangesNothing(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct{ text, note string }{
		{"projectConfig: {projectRequestMessage: lost", "not valid YAML"},
		{"projectConfig: {projectRequestMessage: lost, nonsense: 1}", "nonsense"},
		{"projectConfig: {projectRequestMessage: lost, defaultNodeSelector: bad}", "the selector is invalid"},
	} {
		f.write(tt.text)
		f.waitNote(tt.note)
	}
	if err := os.Remove(f.file); err != nil {
		t.Fatal(err)
	}
	f.waitNote("does not exist")
	if message, _ := f.state(); message != "" {
		t.Errorf("the message became %q", message)
	}
	f.write("projectConfig: {projectRequestMessage: fixed}")
	f.waitMessage("fixed")
}

func TestRejectedConfigurationIsRetried(t *testing.T) {
	f := newFixture(t)
	setBroken := func(broken bool) { f.mu.Lock(); defer f.mu.Unlock(); f.broken = broken }
	setBroken(true)
	f.write("projectConfig: {projectRequestMessage: second}")
	f.waitNote("a certificate is damaged")
	setBroken(false)
	f.waitMessage("second")
	f.waitNoNote()
}
