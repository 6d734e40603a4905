package hostaddr

import (
	"net/netip"
	"testing"
)

func TestReachableReplacesLoopbackAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:2380": "192.0.2.7:2380", "localhost:2380": "192.0.2.7:2380", "0.0.0.0:1": "192.0.2.7:1", "[::]:2380": "192.0.2.7:2380",
		"[::1]:2380": "192.0.2.7:2380", "192.0.2.9:2380": "192.0.2.9:2380", "etcd.example.com:2380": "etcd.example.com:2380", "no port": "no port",
	} {
		if got := Reachable(address, netip.MustParseAddr("192.0.2.7")); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
