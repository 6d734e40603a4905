package jsonlimit

import (
	"encoding/json"
	"testing"
)

// FuzzCount verifies that the number of values in a JSON document does not exceed the upper bound
// that follows from Count's result.
func FuzzCount(f *testing.F) {
	for _, seed := range []string{`{"a": [1, {}, "b,[{\""]}`, `[[[]]]`, `"\\"`, `{"a,\\": 1, "b": [2]}`, "1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var document any
		if json.Unmarshal(text, &document) != nil {
			return
		}
		// Count omits the first value of each array and object.
		if got, most := values(document), 1+2*(&Counter{}).Count(text); got > most {
			t.Errorf("%q has %d values, want at most %d", text, got, most)
		}
	})
}

func values(document any) int {
	count := 1
	switch typed := document.(type) {
	case []any:
		for _, element := range typed {
			count += values(element)
		}
	case map[string]any:
		for _, element := range typed {
			count += values(element)
		}
	}
	return count
}
