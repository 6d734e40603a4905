package host

import (
	"net/netip"
	"testing"
)

func TestPublicAddressesOfConsoleAndAPIServer(t *testing.T) {
	for _, tt := range []struct {
		name, config, address, second, want string
	}{
		{"before the address is known", "", "", "", "https://localhost:8443/console"},
		{"address of the machine", "", "203.0.113.1", "2001:db8::1", "https://203.0.113.1:8443/console"},
		{"machine without an address", "", "192.0.2.1", "", "https://192.0.2.1:8443/console"},
		{"machine with only an IPv6 address", "", "192.0.2.1", "2001:db8::1", "https://[2001:db8::1]:8443/console"},
		{"configured address", "oauthConfig: {masterPublicURL: 'https://master.example.com/'}", "", "", "https://master.example.com/console"},
		{"other port", "servingInfo: {bindAddress: '0.0.0.0:443'}", "192.0.2.1", "", "https://192.0.2.1:443/console"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := loadHost(t, tt.config)
			if tt.address != "" {
				h.Address = netip.MustParseAddr(tt.address)
			}
			h.SecondAddress, _ = netip.ParseAddr(tt.second)
			if got := h.ConsoleURL(); got != tt.want && got != tt.want+"/" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
