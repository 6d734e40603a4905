package image

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer returns the PID of the process that listens on a Unix socket.
func peer(socket string) (pid int, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return 0, fmt.Errorf("find containerd: %w", err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("find containerd: %w", err)
	}
	var credentials *unix.Ucred
	var failure error
	if err := raw.Control(func(descriptor uintptr) {
		credentials, failure = unix.GetsockoptUcred(int(descriptor), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("find containerd: %w", err)
	}
	if failure != nil {
		return 0, fmt.Errorf("find containerd: %w", failure)
	}
	return int(credentials.Pid), nil
}
