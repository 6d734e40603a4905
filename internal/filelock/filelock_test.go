package filelock

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestExclusiveLockHasOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holders := 0 // the race detector also detects a second holder
	var tasks sync.WaitGroup
	for range 8 {
		tasks.Go(func() {
			for range 100 {
				unlock, err := Lock(path, Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				if holders++; holders != 1 {
					t.Errorf("the lock has %d holders", holders)
				}
				holders--
				unlock()
			}
		})
	}
	tasks.Wait()
}

func TestSharedLockHasManyHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		unlock, err := Lock(path, Shared)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
	}
}

func TestErrorNamesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "lock")
	if _, err := Lock(path, Exclusive); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v, want one that names %s", err, path)
	}
}
