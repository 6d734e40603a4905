package platform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// following is a configuration file that is followed, with what was made of it.
type following struct {
	t    *testing.T
	file string

	mu            sync.Mutex
	message, note string
	broken        bool // something that the configuration names
}

const header = "apiVersion: v1\nkind: MasterConfig\n"

func followed(t *testing.T) *following {
	t.Helper()
	w := &following{t: t, file: filepath.Join(t.TempDir(), "master-config.yaml")}
	w.write("projectConfig: {projectRequestMessage: first}")
	c, err := config.Load("/data", w.file)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{Config: c, dataDir: "/data", file: w.file}
	h.adjust(func(next *config.Config) (func(), error) {
		return func() { w.mu.Lock(); defer w.mu.Unlock(); w.message = next.Master.ProjectConfig.ProjectRequestMessage }, nil
	}, "projectConfig.projectRequestMessage")
	h.adjust(func(next *config.Config) (func(), error) {
		if next.Master.ProjectConfig.DefaultNodeSelector == "bad" {
			return nil, errors.New("the selector is bad")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.broken {
			return nil, errors.New("a certificate is damaged")
		}
		return func() {}, nil
	}, "projectConfig.defaultNodeSelector")
	made, err := h.configuration()
	if err != nil {
		t.Fatal(err)
	}
	f := made.(*follower)
	f.period = 5 * time.Millisecond
	f.Notes(func(note string) { w.mu.Lock(); defer w.mu.Unlock(); w.note = note })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx, func() {}) }()
	t.Cleanup(func() { stop(); <-done })
	return w
}

func (w *following) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(header+text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *following) state() (message, note string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.message, w.note
}

func (w *following) waitNote(part string) {
	w.t.Helper()
	eventually.True(w.t, "note with "+part, func() bool { _, note := w.state(); return strings.Contains(note, part) })
}

func TestAChangedConfigurationCounts(t *testing.T) {
	w := followed(t)
	w.write("projectConfig: {projectRequestMessage: second}")
	eventually.Equal(t, "message", func() string { message, _ := w.state(); return message }, "second")

	w.write("projectConfig: {projectRequestMessage: third}\nroutingConfig: {subdomain: apps.example.com}")
	w.waitNote("at the next start only: routingConfig.subdomain")
	if message, _ := w.state(); message != "third" {
		t.Errorf("beside it the message is %q", message)
	}
	w.write("projectConfig: {projectRequestMessage: third}")
	eventually.Equal(t, "note", func() string { _, note := w.state(); return note }, "")
}

func TestADamagedConfigurationChangesNothing(t *testing.T) {
	w := followed(t)
	for _, c := range []struct{ text, note string }{
		{"projectConfig: {projectRequestMessage: lost", "not valid YAML"},
		{"projectConfig: {projectRequestMessage: lost, nonsense: 1}", "nonsense"},
		{"projectConfig: {projectRequestMessage: lost, defaultNodeSelector: bad}", "the selector is bad"},
	} {
		w.write(c.text)
		w.waitNote(c.note)
	}
	if err := os.Remove(w.file); err != nil {
		t.Fatal(err)
	}
	w.waitNote("is gone")
	if message, _ := w.state(); message != "" {
		t.Errorf("the message became %q", message)
	}
	w.write("projectConfig: {projectRequestMessage: mended}")
	eventually.Equal(t, "message", func() string { message, _ := w.state(); return message }, "mended")
}

func TestAConfigurationThatCouldNotBeUsedIsTriedAgain(t *testing.T) {
	w := followed(t)
	mend := func(broken bool) { w.mu.Lock(); defer w.mu.Unlock(); w.broken = broken }
	mend(true)
	w.write("projectConfig: {projectRequestMessage: second}")
	w.waitNote("a certificate is damaged")
	mend(false)
	eventually.Equal(t, "message", func() string { message, _ := w.state(); return message }, "second")
	eventually.Equal(t, "note", func() string { _, note := w.state(); return note }, "")
}
