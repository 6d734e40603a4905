package profile

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestProfilesOfProcess(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "profile.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Serve(ctx, socket) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	eventually.Equal(t, "the mode of the socket", func() os.FileMode {
		info, err := os.Stat(socket)
		if err != nil {
			return 0
		}
		return info.Mode().Perm()
	}, 0o600)

	const compressed = "\x1f\x8b" // files for pprof have a gzip header
	for name, test := range map[string]struct {
		request Request
		prefix  string
	}{
		"heap":               {Request{Name: "heap"}, compressed},
		"CPU time":           {Request{Name: CPU, Duration: time.Second}, compressed},
		"goroutines as text": {Request{Name: "goroutine", Text: true}, "goroutine profile: total "},
	} {
		t.Run(name, func(t *testing.T) {
			var profile bytes.Buffer
			if err := Write(t.Context(), &profile, socket, test.request); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(profile.String(), test.prefix) {
				t.Errorf("the profile begins with %.40q, want %q", profile.String(), test.prefix)
			}
		})
	}
	err := Write(t.Context(), &bytes.Buffer{}, socket, Request{Name: "none"})
	if err == nil || !strings.Contains(err.Error(), "Unknown profile") {
		t.Errorf("an unknown profile returns %v", err)
	}
}
