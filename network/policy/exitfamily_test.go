package policy

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// Addresses of the host and of the outside machine on the network segment that they share.
const (
	hostSecond, outsideSecond   = "fd99::1", "fd99::2"
	egressSecond, foreignSecond = "fd99::77", "fd98::77"
)

// addSecond gives IPv6 addresses to a pod, the host and the outside machine. It returns the pod's
// address.
func (f *fixture) addSecond(namespace, pod string) string {
	f.Helper()
	f.enforcer.Second = Networks{Pods: []netip.Prefix{netip.MustParsePrefix("fd01::/48")}, Services: netip.MustParsePrefix("fd02::/112"), Tunnel: "tunnel"}
	hosttest.Run(f.T, "sysctl -qw net.ipv6.conf.all.forwarding=1; ip address add fd01::1/64 dev to-"+pod+" nodad; ip address add "+hostSecond+"/64 dev to-outside nodad")
	for name, commands := range map[string]string{
		pod:       "ip link set lo up; ip address add fd01::2/64 dev eth0 nodad; ip route add default via fd01::1",
		"outside": "ip link set lo up; ip address add " + outsideSecond + "/64 dev eth0 nodad; ip route add default via " + hostSecond,
	} {
		hosttest.Run(f.T, "ip netns exec "+name+" sh -c '"+commands+"'")
	}
	f.outside.ServeIPv6(f.T, 80)
	lease := fmt.Sprintf(`{"address": %q, "secondAddress": "fd01::2", "pod": {"namespace": %q, "name": %q, "uid": "uid-%[3]s"}}`, f.address[pod], namespace, pod)
	f.must(os.WriteFile(filepath.Join(f.enforcer.LeaseDir, f.address[pod]+".json"), []byte(lease), 0o600))
	return "fd01::2"
}

// waitForSecond waits until a pod has the given IPv6 source address outside the cluster. If want
// is empty, it waits until the pod cannot connect.
func (f *fixture) waitForSecond(pod, want string) {
	f.Helper()
	if want != "" {
		want = "outside " + want
	}
	eventually.Equal(f.T, "IPv6 source address of "+pod, func() string {
		response, _ := f.pods[pod].Probe("tcp6", "["+outsideSecond+"]:80")
		return response
	}, want)
}

func TestEachFamilyHasItsOwnEgressAddress(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.create("shop", "web")
	f.newOutside()
	own := f.addSecond("shop", "web")
	t.Cleanup(func() {
		if err := egressip.Release(); err != nil {
			t.Error(err)
		}
	})
	const first = "198.51.100.77"
	held := func() string { return hosttest.Run(t, "ip -6 -o address show dev to-outside to "+egressSecond) }
	rules := func() string { return hosttest.Run(t, "ip -6 rule") }
	f.egress(nil, nil)
	f.start()
	f.waitForSecond("web", own)

	// A project with an egress address in only one family is closed in the other family.
	f.egress([]string{first}, []string{first, egressSecond})
	f.waitForSource("web", first)
	f.waitForSecond("web", "")
	if strings.Contains(rules(), exitTable) {
		t.Errorf("IPv6 route lookups have a rule that no packet needs:\n%s", rules())
	}
	f.egress([]string{first, egressSecond}, []string{first, egressSecond})
	f.waitForSecond("web", egressSecond)
	f.waitForSource("web", first)
	if !strings.Contains(rules(), exitTable) {
		t.Errorf("no rule selects the table %s:\n%s", exitTable, rules())
	}
	if text := held(); !strings.Contains(text, "deprecated") {
		t.Errorf("the host can use the egress address for its own connections: %q", text)
	}
	if _, err := f.outside.Ask("tcp6", "["+egressSecond+"]:80"); err == nil {
		t.Error("the host accepts connections to an egress address")
	}
	f.stop() // the kernel keeps enforcing the rules
	f.waitForSecond("web", egressSecond)
	f.start()

	f.egress([]string{egressSecond}, []string{first, egressSecond})
	f.waitForSource("web", "")
	f.waitForSecond("web", egressSecond)
	f.egress([]string{egressSecond}, []string{first})
	f.waitForSecond("web", "") // the address is not assigned to a host
	f.egress(nil, nil)
	f.waitForSecond("web", own)
	eventually.Equal(t, "egress address of the host", held, "")
	eventually.True(t, "rules without table "+exitTable, func() bool { return !strings.Contains(rules(), exitTable) })

	// The component does not assign an address that is in another segment, and does not remove an
	// address that an administrator assigned.
	hosttest.Run(t, "ip address add "+egressSecond+"/128 dev to-outside nodad preferred_lft 0")
	f.egress([]string{foreignSecond}, []string{foreignSecond})
	eventually.True(t, "event", func() bool {
		return f.hasEvent("egress IP " + foreignSecond + " is not in an IPv6 subnet of the node's device \"to-outside\"")
	})
	f.egress(nil, nil)
	f.waitForSecond("web", own)
	if held() == "" {
		t.Error("the address of the administrator was removed")
	}
}
