// Package plan passes supervision from `slipway run` to slipway-supervisor. `slipway run` reads the
// configuration, and slipway-supervisor is a separate program that uses less memory. Because the
// process executes the other program, the PID stays the same. Therefore, systemd, the terminal and
// the lock on the data directory are not affected.
package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/supervisor"
)

// Plan describes the work of slipway-supervisor. It contains no secrets.
type Plan struct {
	// Version, DataDir and Socket are arguments of supervisor.New.
	Version, DataDir, Socket string
	// Log is the file for the supervisor's own output. The supervisor rotates it.
	Log string
	// Processes lists the processes in the order in which they start.
	Processes []supervisor.Process
	// Containerd is the name of the containerd process, which reports no events. ContainerdSocket
	// is its socket.
	Containerd, ContainerdSocket string
	// Address is the machine's address. SecondAddress is its IPv6 address, which matters only if
	// DualStack is true. If one of them changes, the supervisor stops all processes and executes
	// Restart, a command that creates a new plan. NodeIP and IgnoredDevices are the other arguments
	// of hostaddr.Wait.
	Address, SecondAddress netip.Addr
	DualStack              bool
	NodeIP                 string
	IgnoredDevices         []string
	Restart                []string
	// Lock is the file descriptor of the lock on the data directory.
	Lock int
}

// Exec writes the plan to a file and replaces this process's program with program. The path of the
// file is the program's argument, and the program inherits the open lock. Exec returns only after
// an error.
func (p Plan) Exec(program, file string, lock *os.File) error {
	// The next program inherits the duplicate, which holds the same lock.
	descriptor, err := unix.FcntlInt(lock.Fd(), unix.F_DUPFD, 0)
	if err != nil {
		return fmt.Errorf("pass lock to %q: %w", program, err)
	}
	p.Lock = descriptor
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return Execute([]string{program, file})
}

// Read reads the plan that Exec wrote. The returned file holds the lock on the data directory until
// it is closed. Programs that this process starts do not inherit the file.
func Read(file string) (Plan, *os.File, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Plan{}, nil, fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return Plan{}, nil, fmt.Errorf("read plan %q: %w", file, err)
	}
	syscall.CloseOnExec(p.Lock)
	return p, os.NewFile(uintptr(p.Lock), "lock"), nil
}

// Execute replaces this process's program. It returns only after an error.
func Execute(command []string) error {
	if err := syscall.Exec(command[0], command, os.Environ()); err != nil {
		return fmt.Errorf("execute %q: %w", command[0], err)
	}
	return nil
}
