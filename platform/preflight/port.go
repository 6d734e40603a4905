package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// bind listens on an address for a moment.
func bind(ctx context.Context, network string, address netip.AddrPort) error {
	var listen net.ListenConfig
	if network == "udp" {
		conn, err := listen.ListenPacket(ctx, network, address.String())
		if err != nil {
			return err
		}
		return conn.Close()
	}
	listener, err := listen.Listen(ctx, network, address.String())
	if err != nil {
		return err
	}
	return listener.Close()
}

// checkPorts binds each address and names the process that uses it. An address that the machine
// does not have yet, such as that of a device that the host creates, is free.
func checkPorts(ctx context.Context, want Requirements, machine Machine) []Problem {
	var problems []Problem
	for _, port := range want.Ports {
		err := machine.Bind(ctx, port.Network, port.Address)
		subject := fmt.Sprintf("port %d", port.Address.Port())
		if port.Network == "udp" {
			subject += " (udp)"
		}
		change := fmt.Sprintf("set %s in %s to another port", port.Setting, port.File)
		switch {
		case err == nil || errors.Is(err, unix.EADDRNOTAVAIL):
		case errors.Is(err, unix.EADDRINUSE):
			owner := machine.owner(port.Network, port.Address)
			problems = append(problems, Problem{Error, subject, fmt.Sprintf("for %s is used by %s", port.Use, owner), owner.stop() + "\n" + change})
		default:
			problems = append(problems, Problem{Error, subject, fmt.Sprintf("for %s cannot be used: %v", port.Use, err), change})
		}
	}
	return problems
}
