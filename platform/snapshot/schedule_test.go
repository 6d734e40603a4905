package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// database is a source that writes one page of content and its hash.
func database(_ context.Context, out io.Writer) error {
	page := make([]byte, 512)
	sum := sha256.Sum256(page)
	_, err := out.Write(append(page, sum[:]...))
	return err
}

// count returns the number of snapshots in a directory.
func count(t *testing.T, dir string) int {
	t.Helper()
	files, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestScheduleKeepsNewestCopies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	s := &Schedule{Source: database, Dir: dir, Interval: 12 * time.Hour, Keep: 2}
	start := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for i := range 4 {
		if _, err := s.save(t.Context(), start.Add(time.Duration(i)*s.Interval)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := List(dir)
	if err != nil || len(files) != 2 || filepath.Base(files[0].Path) != "etcd-20261125T000000Z.db" || !files[1].Time.Equal(start.Add(36*time.Hour)) {
		t.Errorf("the copies are %+v, %v", files, err)
	}
	for _, file := range files {
		if _, err := Check(file.Path); err != nil {
			t.Errorf("%s: %v", file.Path, err)
		}
		if info, err := os.Stat(file.Path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file.Path, info, err)
		}
	}
}

func TestNextCopyIsDueIntervalAfterNewest(t *testing.T) {
	dir := t.TempDir()
	s := &Schedule{Source: database, Dir: dir, Interval: 12 * time.Hour, Keep: 2}
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	if got := s.delay(now, time.Minute); got != time.Minute {
		t.Errorf("without a copy, the delay is %s", got)
	}
	if _, err := s.save(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]time.Duration{
		time.Hour: 11 * time.Hour, 20 * time.Hour: 0, -time.Hour: 12 * time.Hour,
	} {
		if got := s.delay(now.Add(after), time.Minute); got != want {
			t.Errorf("%s after the newest copy, the delay is %s, want %s", after, got, want)
		}
	}
}

func TestFailedCopyIsReportedAndRetried(t *testing.T) {
	dir := t.TempDir()
	// A killed process wrote the first file, and the administrator wrote the second file.
	for _, name := range []string{"etcd-20200101T000000Z.db.partial", "etcd-mine.db"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var fails atomic.Bool
	fails.Store(true)
	var noted atomic.Value
	noted.Store("")
	s := &Schedule{Dir: dir, Interval: time.Second, Keep: 1, Source: func(ctx context.Context, out io.Writer) error {
		if fails.Load() {
			return errors.New("no leader")
		}
		return database(ctx, out)
	}}
	s.Notes(func(text string) { noted.Store(text) })
	componenttest.Run(t, s.Run)
	eventually.True(t, "the failure is reported", func() bool { return strings.Contains(noted.Load().(string), "no leader") })
	if count(t, dir) != 0 {
		t.Error("a failed copy still exists")
	}
	fails.Store(false)
	eventually.True(t, "a copy is saved", func() bool { return count(t, dir) == 1 && noted.Load() == "" })
	if _, err := os.Stat(filepath.Join(dir, "etcd-20200101T000000Z.db.partial")); !os.IsNotExist(err) {
		t.Errorf("the interrupted copy still exists: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd-mine.db")); err != nil {
		t.Errorf("a file of the administrator was removed: %v", err)
	}
}

func TestDamagedCopyIsDetected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if size, err := Save(t.Context(), database, path); err != nil || size != 512+sha256.Size {
		t.Fatalf("saved %d bytes, %v", size, err)
	}
	if _, err := Save(t.Context(), database, path); err == nil {
		t.Error("Save replaced an existing file")
	}
	for name, damage := range map[string]func([]byte) []byte{
		"changed": func(b []byte) []byte { b[7] ^= 1; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"no hash": func(b []byte) []byte { return b[:512] },
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := path + "." + strings.ReplaceAll(name, " ", "-")
		if err := os.WriteFile(damaged, damage(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(damaged); err == nil {
			t.Errorf("no error for a damaged copy (%s)", name)
		}
	}
}
