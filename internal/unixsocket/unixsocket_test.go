package unixsocket

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestListenReplacesSocketOfKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	former, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	former.(*net.UnixListener).SetUnlinkOnClose(false) // a killed process leaves its socket
	former.Close()
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket: %v, %v", info.Mode(), err)
	}
}
