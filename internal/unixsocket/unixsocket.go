// Package unixsocket creates Unix sockets for components.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// Listen listens on a Unix socket. Only the socket's owner can connect. Listen replaces the socket
// of a killed process. The directory must exist.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove previous socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("create socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("restrict socket: %w", err)
	}
	return listener, nil
}
