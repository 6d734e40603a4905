package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModeOfProxyThatKubernetesRemovedIsIgnored(t *testing.T) {
	c, err := loadText(t, "NodeConfig", "proxyArguments: {proxy-mode: [userspace], v: ['4']}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"v": {"4"}}, c.Node.ProxyFlags()); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	want := []string{"NodeConfig: proxyArguments.proxy-mode userspace, because Kubernetes no longer has this mode"}
	if got := c.Ignored(); !slices.Equal(got, want) {
		t.Errorf("ignored settings %q, want %q", got, want)
	}
	if c, err = loadText(t, "NodeConfig", "proxyArguments: {proxy-mode: [iptables]}"); err != nil || c.Node.ProxyFlags()[proxyMode][0] != "iptables" || len(c.Ignored()) > 0 {
		t.Errorf("another mode: %v, %v", c.Ignored(), err)
	}
}
