package vrrp

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzSettings verifies that the values of environment variables cannot add statements to
// keepalived's configuration.
func FuzzSettings(f *testing.F) {
	f.Add("ha", "eth1", "192.0.2.1-25,192.0.2.40", "preempt_delay 300", "/etc/check.sh", "/etc/notify.sh", "1", "30")
	f.Add("ha }\nvrrp_script x {", "eth0\n", "192.0.2.1", "nopreempt\n}", "/a\" ", "/b;c", "0", "0")
	f.Add("", "", "", "preempt_delay", "", "", "-1", "255")
	f.Fuzz(func(t *testing.T, name, device, addresses, preemption, check, notify, groups, first string) {
		s, err := read("CONFIG_NAME="+name, "NETWORK_INTERFACE="+device, "VIRTUAL_IPS="+addresses, "PREEMPTION="+preemption,
			"CHECK_SCRIPT="+check, "NOTIFY_SCRIPT="+notify, "VIP_GROUPS="+groups, "VRRP_ID_OFFSET="+first)
		if err != nil {
			return
		}
		content, err := s.config("eth0", netip.MustParseAddr("198.51.100.4"), Programs{Netcat: "/bin/nc"})
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		if got := strings.Count(text, "vrrp_instance "); got != len(s.groups()) {
			t.Errorf("%d groups have %d instances in\n%s", len(s.groups()), got, text)
		}
		if strings.Count(text, "{") != strings.Count(text, "}") || strings.Count(text, `"`)%2 != 0 || strings.ContainsAny(text, "!#\r\x00") {
			t.Errorf("the configuration has other statements:\n%s", text)
		}
	})
}
