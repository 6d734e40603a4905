package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// acquire acquires a turn for a tenant. It fails the test if no turn is available.
func acquire(t *testing.T, s *shares, tenant string) (release func()) {
	t.Helper()
	release, err := s.acquire(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestRequestWaitsForShareOfItsTenant(t *testing.T) {
	s := &shares{requests: 1, waiting: 1, timeout: time.Minute}
	release := acquire(t, s, "alice")
	turns := make(chan func())
	go func() {
		next, err := s.acquire(t.Context(), "alice")
		if err != nil {
			t.Error(err)
		}
		turns <- next
	}()
	eventually.True(t, "the second request waits", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tenants["alice"].count == 2
	})
	if _, err := s.acquire(t.Context(), "alice"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a third request: got %v", err)
	}
	acquire(t, s, "bob")()
	select {
	case <-turns:
		t.Error("two requests of a tenant run at the same time")
	default:
	}
	release()
	(<-turns)()
	if len(s.tenants) > 0 {
		t.Errorf("tenants without requests are still in the map: %v", s.tenants)
	}
}

func TestWaitForTurnEnds(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name    string
		ctx     context.Context
		timeout time.Duration
	}{
		{"after the timeout", t.Context(), time.Nanosecond},
		{"with the request", cancelled, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &shares{requests: 1, waiting: 1, timeout: time.Minute}
			release := acquire(t, s, "alice")
			s.timeout = tt.timeout
			if _, err := s.acquire(tt.ctx, "alice"); !apierrors.IsTooManyRequests(err) {
				t.Errorf("got %v", err)
			}
			release()
			s.timeout = time.Minute
			acquire(t, s, "alice")()
			if len(s.tenants) > 0 {
				t.Errorf("tenants without requests are still in the map: %v", s.tenants)
			}
		})
	}
}

func TestErrorNamesTenantAndRemedy(t *testing.T) {
	for remedy, want := range map[string]string{
		"":                       "alice has too many large requests at the same time; send them one after the other",
		"watches; close some":    "alice has too many watches; close some",
		"connections; close one": "alice has too many connections; close one",
	} {
		s := &shares{remedy: remedy}
		if _, err := s.acquire(t.Context(), "alice"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
