package componenttest

import (
	"net"
	"testing"
)

// UnusedAddress returns a loopback address, with a TCP port on which no process listens.
func UnusedAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
