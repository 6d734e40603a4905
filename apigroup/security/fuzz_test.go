package security

import "testing"

// FuzzRange checks that formatting a range returns the parsed text, and that the range contains all
// its blocks.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"1000000000-1999999999/10000", "0-0/1", "0-4294967295/1", "5-1/1", "1-2/0", "1/2/3", "-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRange(text)
		if err != nil {
			return
		}
		if idRange, err := parseRange(r.String()); err != nil || idRange != r {
			t.Errorf("%q is %+v, again %+v, %v", text, r, idRange, err)
		}
		for _, block := range []int{0, r.count() - 1} {
			if at, ok := r.index(r.annotation(block)); !ok || at != block {
				t.Errorf("block %d of %q is %q, at %d %v", block, text, r.annotation(block), at, ok)
			}
		}
	})
}

// FuzzLabels checks that a valid configuration never produces an empty label.
func FuzzLabels(f *testing.F) {
	for _, seed := range []string{"s0:/2", "s0/1,5", "s0:/5,1024", "x/0", "/", "s0:/3,2"} {
		f.Add(seed, uint16(0))
	}
	f.Fuzz(func(t *testing.T, text string, number uint16) {
		l, err := parseLabels(text)
		if err != nil {
			return
		}
		if count := l.count(); count.IsInt64() && int64(number) < count.Int64() && l.at(int(number)) == "" {
			t.Errorf("label %d of %q is empty", number, text)
		}
	})
}
