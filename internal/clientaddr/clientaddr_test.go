package clientaddr

import "testing"

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:4711":              "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:4711": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:4711":         "fe80::/64",
		"[::ffff:192.0.2.1]:4711":     "::ffff:192.0.2.1",
		"@":                           "@",
	} {
		if got := Network(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
