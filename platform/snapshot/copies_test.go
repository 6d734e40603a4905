package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// names returns the names of the files in a directory.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return strings.Join(list, " ")
}

func TestSecondStorageGetsSameCopies(t *testing.T) {
	root := t.TempDir()
	storage := filesystem.New(filesystem.DriverParameters{RootDirectory: root, MaxThreads: 25})
	s := &Schedule{
		Source: database, Dir: filepath.Join(t.TempDir(), "snapshots"), Interval: time.Hour, Keep: 2,
		Copies: &Copies{Dir: "/snapshots/first", Open: func(context.Context) (driver.StorageDriver, error) { return storage, nil }},
	}
	stored := filepath.Join(root, "snapshots", "first")
	if err := storage.PutContent(t.Context(), "/snapshots/first/mine.db", []byte("x")); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		if _, err := s.save(t.Context(), start.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		files, err := List(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Copies.sync(t.Context(), files); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, stored); got != "etcd-20261124T010000Z.db etcd-20261124T020000Z.db mine.db" {
		t.Errorf("the storage has %s", got)
	}
	if _, err := Check(filepath.Join(stored, "etcd-20261124T020000Z.db")); err != nil {
		t.Error(err)
	}
}

func TestFailedUploadIsRetriedWithoutNewCopy(t *testing.T) {
	root := t.TempDir()
	var fails atomic.Bool
	fails.Store(true)
	var noted atomic.Value
	noted.Store("")
	s := &Schedule{Source: database, Dir: t.TempDir(), Interval: time.Hour, Keep: 2, Copies: &Copies{Dir: "/a", Open: func(context.Context) (driver.StorageDriver, error) {
		if fails.Load() {
			return nil, errors.New("no such bucket")
		}
		return filesystem.New(filesystem.DriverParameters{RootDirectory: root, MaxThreads: 25}), nil
	}}}
	s.Notes(func(text string) { noted.Store(text) })
	if err := s.step(t.Context()); err == nil || !strings.Contains(err.Error(), "no such bucket") || count(t, s.Dir) != 1 {
		t.Errorf("%v, %d copies", err, count(t, s.Dir))
	}
	fails.Store(false)
	if err := s.step(t.Context()); err != nil || count(t, s.Dir) != 1 || count(t, filepath.Join(root, "a")) != 1 {
		t.Errorf("%v, %d copies, %d in the storage", err, count(t, s.Dir), count(t, filepath.Join(root, "a")))
	}
	s.Interval = time.Second
	componenttest.Run(t, s.Run)
	eventually.True(t, "the storage has the same copies", func() bool { return count(t, filepath.Join(root, "a")) == 2 })
}
