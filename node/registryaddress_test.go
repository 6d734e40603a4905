package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/node/containerd"
)

// newRegistryAddress returns the RegistryAddress of a host that first looks for the registry at
// 192.0.2.1, and then receives lists of addresses.
func newRegistryAddress(t *testing.T, lists ...[]string) *RegistryAddress {
	t.Helper()
	dir := t.TempDir()
	return &RegistryAddress{
		File: filepath.Join(dir, "registry-address"), First: "192.0.2.1:5000",
		Hosts: containerd.RegistryHosts{Dir: filepath.Join(dir, "certs.d"), Names: []string{"registry:5000"}, CAFile: "/ca.crt"},
		Watch: func(_ context.Context, changed func([]string)) {
			for _, list := range lists {
				changed(list)
			}
		},
	}
}

// configured returns containerd's registry settings.
func (r *RegistryAddress) configured(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.Hosts.Dir, "registry:5000", "hosts.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestHostFollowsRegistryAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		lists [][]string
		want  string
	}{
		"no address yet":      {nil, "192.0.2.1:5000"},
		"first address":       {[][]string{{"192.0.2.1:5000"}}, "192.0.2.1:5000"},
		"another one":         {[][]string{nil, {"192.0.2.1:5000"}, {"192.0.2.2:5000", "192.0.2.3:5000"}}, "192.0.2.2:5000"},
		"briefly unavailable": {[][]string{{"192.0.2.2:5000"}, nil}, "192.0.2.2:5000"},
		"first address again": {[][]string{{"192.0.2.2:5000"}, nil, {"192.0.2.1:5000"}}, "192.0.2.1:5000"},
	} {
		r := newRegistryAddress(t, tt.lists...)
		if err := r.Configure(); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), func() {}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(r.configured(t), "https://"+tt.want) {
			t.Errorf("%s: containerd has the settings\n%s", name, r.configured(t))
		}
		restarted := &RegistryAddress{File: r.File, First: r.First}
		if last, err := restarted.Last(); err != nil || last != tt.want {
			t.Errorf("%s: after a restart, the address is %q, error %v", name, last, err)
		}
	}
}

func TestUnwritableRegistryAddressIsAnError(t *testing.T) {
	r := newRegistryAddress(t)
	r.File = filepath.Join(t.TempDir(), "missing", "registry-address")
	r.Watch = func(ctx context.Context, changed func([]string)) {
		changed([]string{"192.0.2.2:5000"})
		<-ctx.Done()
	}
	if err := r.Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "record registry address") {
		t.Errorf("got %v", err)
	}
}

func TestUnreadableRegistryAddressIsAnError(t *testing.T) {
	r := newRegistryAddress(t)
	if err := os.Mkdir(r.File, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(); err == nil || !strings.Contains(err.Error(), "read registry address") {
		t.Errorf("got %v", err)
	}
}
