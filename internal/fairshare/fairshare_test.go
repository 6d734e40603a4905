package fairshare

import "testing"

func TestShares(t *testing.T) {
	s := Shares[string]{PerKey: 80, Total: 100}
	fill := func(key string) (count int) {
		for s.Acquire(key) {
			count++
		}
		return count
	}
	for _, step := range []struct {
		key  string
		want int
	}{
		{"first", 80},  // the maximum for a key
		{"second", 50}, // beyond Total, an equal share of it
		{"third", 33},
		{"first", 0},
	} {
		if got := fill(step.key); got != step.want {
			t.Errorf("%s acquires %d, want %d", step.key, got, step.want)
		}
	}
	if keys, total := s.InUse(); keys != 3 || total != 163 {
		t.Errorf("%d keys use %d", keys, total)
	}
	for key, count := range map[string]int{"first": 80, "second": 50, "third": 33} {
		for range count {
			s.Release(key)
		}
	}
	if keys, total := s.InUse(); keys != 0 || total != 0 {
		t.Errorf("after all releases, %d keys use %d", keys, total)
	}
}

func TestLimitOfZeroIsNoLimit(t *testing.T) {
	perKey, total, none := Shares[int]{PerKey: 1}, Shares[int]{Total: 1}, Shares[int]{}
	if !perKey.Acquire(1) || perKey.Acquire(1) || !perKey.Acquire(2) {
		t.Error("PerKey does not apply alone")
	}
	if !total.Acquire(1) || total.Acquire(1) {
		t.Error("Total does not apply alone")
	}
	if !none.Acquire(1) || !none.Acquire(1) {
		t.Error("without limits, nothing more can be acquired")
	}
}
