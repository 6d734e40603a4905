package registry

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Intervals of the checks for a full disk and for abandoned uploads.
const (
	diskInterval   = 10 * time.Second
	uploadInterval = 10 * time.Minute
)

// collectGarbage periodically removes abandoned uploads and the content of deleted projects until
// ctx is done. When the reason why pushes are rejected changes, collectGarbage passes it to note,
// or "" if pushes are accepted.
func (s *server) collectGarbage(ctx context.Context, note func(string)) {
	ticker := time.NewTicker(diskInterval)
	defer ticker.Stop()
	var lastUploads time.Time
	var lastNote string
	projects := true // projects might have been deleted while the registry was stopped
	for {
		if text := s.diskNote(); text != lastNote {
			note(text)
			lastNote = text
		}
		if store := s.inUse(); store != nil {
			if projects {
				err := s.removeDeleted(ctx, store)
				if err != nil && ctx.Err() == nil {
					slog.Warn("cannot remove the content of deleted projects", "error", err)
				}
				projects = err != nil || !s.namespaces.synced()
			}
			if time.Since(lastUploads) > uploadInterval {
				lastUploads, projects = time.Now(), true // an upload might have ended after its project
				if err := s.removeAbandoned(ctx, store); err != nil && ctx.Err() == nil {
					slog.Warn("cannot remove abandoned uploads", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.namespaces.deleted:
			projects = true
		}
	}
}

// inUse returns the store if it contains content or was used. Otherwise, it returns nil, so that an
// unused registry stays closed.
func (s *server) inUse() *store {
	if s.guard != nil && s.guard.dir != "" {
		if _, err := os.Stat(filepath.Join(s.guard.dir, rootDir)); err != nil {
			return nil
		}
	} else if !s.store.isOpen() {
		return nil
	}
	store, err := s.store.get()
	if err != nil {
		return nil
	}
	return store
}

// diskNote returns the reason why the registry rejects pushes, or "" if it accepts them.
func (s *server) diskNote() string {
	if s.guard == nil || s.guard.dir == "" {
		return ""
	}
	var full *refusal
	if errors.As(checkSpace(s.guard.dir, s.guard.reserve), &full) {
		return "pushes are rejected: " + full.message
	}
	return ""
}

// removeAbandoned removes abandoned uploads and expired promises (see promises).
func (s *server) removeAbandoned(ctx context.Context, store *store) error {
	if store.readOnly {
		return nil
	}
	search := collection{store: store, now: time.Now(), uploads: s.uploads}
	err := search.abandoned(ctx)
	s.uploads.forget(time.Now().Add(-2 * abandonAge))
	s.promises.forget(func(_ string, result time.Time) bool { return time.Since(result) > uploadAge })
	return err
}
