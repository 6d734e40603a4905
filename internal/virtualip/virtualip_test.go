package virtualip

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for list, want := range map[string]string{
		"192.0.2.1":                   "[192.0.2.1]",
		"192.0.2.10-12, 198.51.100.1": "[192.0.2.10 192.0.2.11 192.0.2.12 198.51.100.1]",
		"192.0.2.254-192.0.3.1":       "[192.0.2.254 192.0.2.255 192.0.3.0 192.0.3.1]",
		"192.0.2.7-7,":                "[192.0.2.7]",
		"":                            "set addresses",
		"192.0.2.1,192.0.2.1-2":       "192.0.2.1 appears twice",
		"192.0.2.12-10":               "ends before it begins",
		"2001:db8::1":                 "must be an IPv4 address",
		"192.0.2.1-x":                 "must be an IPv4 address",
		"127.0.0.1":                   "must be an IPv4 address",
		"192.0.2.1\n}":                "must be an IPv4 address",
		"10.0.0.0-10.255.255.255":     "more than 1024",
	} {
		got, err := Parse(list)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", list, err, want)
			}
			continue
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", list, got, want)
		}
	}
}
