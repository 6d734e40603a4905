package jsonlimit

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestValuesAreCountedOutsideOfStrings(t *testing.T) {
	for text, want := range map[string]int{
		`1`:                            0,
		`[1,2,3]`:                      3,
		`{"a": {}, "b": [[], {}]}`:     7,
		`{"a,[{": "b,\",[{\\", "c":1}`: 2,
	} {
		if got := (&Counter{}).Count([]byte(text)); got != want {
			t.Errorf("%s: %d values, want %d", text, got, want)
		}
		read := func(limit int) error {
			_, err := io.Copy(io.Discard, Reader(iotest.OneByteReader(strings.NewReader(text)), limit))
			return err
		}
		if err := errors.Join(read(want), Check([]byte(text), want)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if want == 0 {
			continue
		}
		exceeded := &Error{}
		if err := read(want - 1); !errors.As(err, &exceeded) || exceeded.Limit != want-1 {
			t.Errorf("%s cannot be read with a limit of %d: %v", text, want-1, err)
		}
		if Check([]byte(text), want-1) == nil {
			t.Errorf("%s is accepted with a limit of %d", text, want-1)
		}
	}
}
