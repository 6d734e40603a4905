package keylock

import (
	"sync"
	"testing"
)

func TestLockExcludesOnlyTheSameKey(t *testing.T) {
	var locks Locks
	unlock := locks.Lock("a")
	locks.Lock("b")() // would block forever if the keys shared a lock
	var holders, total int
	var work sync.WaitGroup
	for range 100 {
		work.Go(func() {
			defer locks.Lock("a")()
			holders++
			if holders != 1 {
				t.Errorf("%d holders", holders)
			}
			total++
			holders--
		})
	}
	unlock()
	work.Wait()
	if total != 100 || len(locks.locks) > 0 {
		t.Errorf("%d calls, %d remaining locks", total, len(locks.locks))
	}
}
