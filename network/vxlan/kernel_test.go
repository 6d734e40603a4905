package vxlan

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/usermode"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) {
	if usermode.Inside() {
		usermode.Main(m)
	}
	hosttest.Main(m)
}

// TestProgramsRunOnLinux61 runs tests in user-mode Linux, whose version is that of Debian 12's
// kernel. The kernel must accept all programs, and deliver packets over each path.
func TestProgramsRunOnLinux61(t *testing.T) {
	if !usermode.In(t, "ipv6", "veth", "bridge", "vxlan", "sch_ingress", "cls_bpf", "iptable_filter") {
		return
	}
	for name, test := range map[string]func(*testing.T){
		"network IDs":           TestPacketsHaveTheNetworkIDOfTheSender,
		"network IDs over IPv6": TestIPv6PacketsHaveTheNetworkIDOfTheSender,
		"direct connections":    TestConnectionsBetweenHostsAreDirect,
	} {
		t.Run(name, test)
	}
}
