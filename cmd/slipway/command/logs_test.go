package command

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/host"
)

func TestProcessOfComponent(t *testing.T) {
	for name, want := range map[string]string{"kubelet": "node", "etcd": "control-plane", "node": "node", "slipway": "slipway", "containerd": "containerd"} {
		if got, err := processOf(&host.Host{}, name); err != nil || got != want {
			t.Errorf("%s is in %q (%v), want %q", name, got, err, want)
		}
	}
	if _, err := processOf(&host.Host{}, "docker"); err == nil || !strings.Contains(err.Error(), "choose one of: allocator, api, apiserver") {
		t.Errorf("error is %v", err)
	}
}
