package registry

import (
	"context"
	"errors"
	"testing"
)

func TestClientCannotExceedItsShare(t *testing.T) {
	s := newShares()
	var releases []func()
	for range maxShare {
		release, err := s.take(t.Context(), "mallory")
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.take(canceled, "mallory"); !errors.Is(err, context.Canceled) {
		t.Errorf("a request beyond the share: %v, want it to wait", err)
	}
	waiting, stop := context.WithCancel(t.Context())
	results := make(chan error)
	for range maxWaiting {
		if _, err := s.join("mallory"); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_, err := s.take(waiting, "mallory")
		results <- err
	}()
	if err := <-results; !errors.Is(err, errBusy) {
		t.Errorf("a request beyond the waiting ones: %v, want %v", err, errBusy)
	}
	stop()
	release, err := s.take(t.Context(), "alice")
	if err != nil {
		t.Errorf("another client: %v", err)
	}
	release()
	for range maxWaiting {
		s.leave("mallory")
	}
	for _, release := range releases {
		release()
	}
	if len(s.clients) != 0 {
		t.Errorf("after all requests ended, %d clients are left", len(s.clients))
	}
}
