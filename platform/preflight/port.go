package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// bind binds an address and releases it immediately.
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

const (
	// exitTimeout is how long to wait for a process that is exiting. The sockets of a process that
	// was killed might still exist although /proc no longer shows the process's memory and open
	// files.
	exitTimeout = 3 * time.Second
	exitPoll    = 100 * time.Millisecond
)

// bindWhenFree binds an address. If the address is in use, bindWhenFree returns the process that
// uses it. While /proc shows no such process, it waits and retries.
func (m Machine) bindWhenFree(ctx context.Context, network string, address netip.AddrPort) (user owner, err error) {
	ctx, stop := context.WithTimeout(ctx, exitTimeout)
	defer stop()
	for {
		if err = m.Bind(ctx, network, address); !errors.Is(err, unix.EADDRINUSE) {
			return owner{}, err
		}
		if user = m.owner(network, address); user.pid != 0 {
			return user, err
		}
		select {
		case <-ctx.Done():
			return user, err
		case <-time.After(exitPoll):
		}
	}
}

// checkPorts binds each address and reports the process that uses it. It treats an address that the
// machine does not have yet, such as the address of a device that the host creates later, as free.
func checkPorts(ctx context.Context, want Requirements, machine Machine) []Problem {
	var problems []Problem
	for _, port := range want.Ports {
		user, err := machine.bindWhenFree(ctx, port.Network, port.Address)
		subject := fmt.Sprintf("port %d", port.Address.Port())
		if port.Network == "udp" {
			subject += " (udp)"
		}
		change := fmt.Sprintf("set another port in %s of %s", port.Setting, port.File)
		switch {
		case err == nil || errors.Is(err, unix.EADDRNOTAVAIL):
		case errors.Is(err, unix.EADDRINUSE):
			problems = append(problems, Problem{Error, subject, fmt.Sprintf("for %s is used by %s", port.Use, user), user.stop() + "\n" + change})
		default:
			problems = append(problems, Problem{Error, subject, fmt.Sprintf("for %s cannot be used: %v", port.Use, err), change})
		}
	}
	return problems
}
