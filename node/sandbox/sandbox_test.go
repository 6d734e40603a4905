package sandbox

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestNetworkIsThatOfSandboxProcess(t *testing.T) {
	for info, want := range map[string]string{
		`{"pid": 42, "config": {}}`: "/proc/42/ns/net", `{"pid": 0}`: "", `{}`: "", ``: "", `{"pid": "x"}`: "",
	} {
		if got, err := processNetwork(info); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", info, got, err, want)
		}
	}
}

func TestErrorOfStoppedRuntimeNamesSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	if _, err := Network(t.Context(), socket, "shop", "web"); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("got error %v, want one with the socket", err)
	}
}
