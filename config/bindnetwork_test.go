package config

import (
	"strings"
	"testing"
)

func TestBindNetworkMustMatchAddress(t *testing.T) {
	for _, kind := range []string{masterKind, nodeKind} {
		for keys, want := range map[string]string{
			"servingInfo: {bindNetwork: tcp4}":                               "",
			"servingInfo: {bindNetwork: tcp}":                                "",
			"servingInfo: {bindNetwork: tcp6, bindAddress: '[::]:7443'}":     "",
			"servingInfo: {bindNetwork: tcp6}":                               "but bindAddress is 0.0.0.0:",
			"servingInfo: {bindNetwork: tcp4, bindAddress: '[::1]:7443'}":    "but bindAddress is [::1]:7443",
			"servingInfo: {bindNetwork: udp, bindAddress: '127.0.0.1:7443'}": "must be tcp, tcp4 or tcp6",
		} {
			c, err := loadText(t, kind, keys)
			if want == "" && err == nil && len(c.Ignored()) == 0 {
				continue
			}
			if want == "" || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: got %v, want %q", kind, keys, err, want)
			}
		}
	}
}
