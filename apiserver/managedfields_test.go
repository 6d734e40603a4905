package apiserver

import "testing"

func TestPathsOfManagedFieldsAreCounted(t *testing.T) {
	tests := []struct {
		name, json string
		want       int
	}{
		{"no strings", `[1, true, null]`, 0},
		{"ordinary keys and values", `{"name": "web", "a": "b", "": ""}`, 0},
		{"fields", `{"f:metadata": {"f:labels": {"f:app": {}}}}`, 3},
		{"key of a list item", `{"k:{\"name\":\"f:x\"}": {".": {}}}`, 1},
		{"value and index of a list item", `{"v:1": {}, "i:0": {}}`, 2},
		{"escaped first character", `{"\u0066:name": {}}`, 1},
		{"escaped second character", `{"f\u003aname": {}}`, 1},
		{"escapes that could hide a path", `{"a\"f:b": "\\"}`, 2},
		{"path as a value", `["f:name"]`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var whole, pieces paths
			if got := whole.count([]byte(tt.json)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			got := 0
			for i := range tt.json {
				got = pieces.count([]byte{tt.json[i]})
			}
			if got != tt.want {
				t.Errorf("byte by byte, got %d, want %d", got, tt.want)
			}
		})
	}
}
