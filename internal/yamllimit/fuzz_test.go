package yamllimit

import (
	"strings"
	"testing"
)

// FuzzCount verifies that the number of values in text does not exceed the upper bound that follows
// from Count's result.
func FuzzCount(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, 2, {}], "b,[": "x\"{,"}`, "# \"\na: [1, 2, 3]", "a:\r- 1\r- 2", "- - - - a", "? ? a", "a: b\"c\nd: [{},{},{}]", "-\u0085-\u2028-\u2029- a",
		"- ? a\n  : b", ": : : a", "a: |\n  text\n  - text", "'\n'", "--- a\n--- b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.ContainsAny(string(text), "*<") || len(text) > 1<<16 || strings.HasPrefix(string(text), "\xff\xfe") || strings.HasPrefix(string(text), "\xfe\xff") {
			return
		}
		document, err := decode(text)
		if err != nil {
			return
		}
		const valuesPerCount = 4
		if got, most := values(document), valuesPerCount*(1+Count(text)); got > most {
			t.Errorf("%q has %d values, want at most %d", text, got, most)
		}
	})
}

// values returns the number of values in a document, including its keys.
func values(document any) int {
	count := 1
	switch typed := document.(type) {
	case []any:
		for _, element := range typed {
			count += values(element)
		}
	case map[any]any:
		for key, element := range typed {
			count += values(key) + values(element)
		}
	}
	return count
}
