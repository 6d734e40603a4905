package driver

import (
	"strings"
	"testing"
)

// FuzzOptions checks that options from the kubelet can be parsed and that errors contain no
// secrets.
func FuzzOptions(f *testing.F) {
	f.Add(`{"kubernetes.io/fsType":"ext4","kubernetes.io/readwrite":"ro","kubernetes.io/secret/password":"aHVudGVyMg==","size":"1Gi","kubernetes.io/mounterArgs.FsGroup":"1000"}`, "1Gi")
	f.Add(`{"kubernetes.io/secret/password":"hunter2hunter2"}`, "9223372036854775807E")
	f.Add(`[]`, "kK")
	f.Add(`{"a":1}`, "i")
	f.Fuzz(func(t *testing.T, text, size string) {
		if _, err := ParseOptions(text); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
		if bytes, err := (Options{Values: map[string]string{"size": size}}).Size("size", 1); err == nil && bytes < 0 {
			t.Errorf("%q: got %d bytes", size, bytes)
		}
	})
}
