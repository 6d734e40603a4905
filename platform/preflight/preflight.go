// Package preflight checks a machine before any process starts on it. It reports all problems that
// would keep a host from working, each with its remedy: programs, features of the kernel, cgroups,
// memory, disks, ports, and a few settings.
package preflight

import (
	"context"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Requirements are what a host requires of its machine. They follow from the configuration.
type Requirements struct {
	// NodeName is the name that the node registers under.
	NodeName string
	// Programs must be in PATH.
	Programs []Program
	// Ports are the ports that the host's components will bind.
	Ports []Port
	// Directories are the directories that the host will write to. The first is the data directory, in
	// which features of the kernel are tried.
	Directories []Directory
	// Sockets are paths of Unix sockets that the host creates.
	Sockets []string
	// Memory is the number of bytes that should be available.
	Memory uint64
}

// Program is a program and the Debian or Ubuntu package that has it.
type Program struct{ Name, Package string }

// Programs are the programs that a host calls.
func Programs() []Program {
	return []Program{
		{"nft", "nftables"},
		{"mount", "mount"},
		{"umount", "mount"},
		{"losetup", "mount"},
		{"mkfs.ext4", "e2fsprogs"},
	}
}

// Port is an address that a component will bind.
type Port struct {
	// Use is the purpose, such as "API".
	Use string
	// Network is "tcp" or "udp".
	Network string
	Address netip.AddrPort
	// Setting is the configuration's key of the address, and File the file that contains it.
	Setting, File string
}

// Directory is a directory that the host will write to. It need not exist yet.
type Directory struct {
	Path string
	// Free is the number of bytes that should be free.
	Free uint64
	// Programs means that programs are started from the directory.
	Programs bool
}

// Severity reports whether a host can work despite a problem.
type Severity string

// The severities of a problem.
const (
	Error   Severity = "error"   // the host does not work until this is fixed
	Warning Severity = "warning" // the host works, but worse than it should
)

// Problem is one unmet requirement of a host.
type Problem struct {
	Severity Severity
	// Subject is the affected object, such as "program nft" or "port 8443".
	Subject string
	// Text describes the problem.
	Text string
	// Remedy repairs the problem. It is a command if possible.
	Remedy string
}

// Machine provides the facts that the checks read. ThisMachine is the real one.
type Machine struct {
	// Root is the directory that proc, sys, dev and etc are read in.
	Root string
	// UID is the effective user.
	UID int
	// Path is the list of directories with programs.
	Path string
	// Now is the machine's time.
	Now time.Time
	// Try uses a feature of the kernel and returns an error if it does not work. dir is a working
	// directory.
	Try func(ctx context.Context, feature Feature, dir string) error
	// Statfs describes a file system.
	Statfs func(path string, fs *unix.Statfs_t) error
	// Bind binds an address for a moment.
	Bind func(ctx context.Context, network string, address netip.AddrPort) error
}

// ThisMachine is the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{
		Root: "/", UID: os.Geteuid(), Path: os.Getenv("PATH"), Now: time.Now(),
		Try: try, Statfs: unix.Statfs, Bind: bind,
	}
}

// Run returns every problem that a host with these requirements has on the machine, errors first.
// It removes its changes before it returns. Without root, it reports the missing root permission,
// and only the problems that a user without root can find.
func Run(ctx context.Context, want Requirements, machine Machine) []Problem {
	var errors, warnings []Problem
	for _, check := range []func(context.Context, Requirements, Machine) []Problem{
		checkUser, checkPrograms, checkKernel, checkCgroups, checkDirectories, checkSockets,
		checkPorts, checkMemory, checkClock, checkNodeName, checkSwap, checkLimits,
	} {
		for _, problem := range check(ctx, want, machine) {
			if problem.Severity == Warning {
				warnings = append(warnings, problem)
			} else {
				errors = append(errors, problem)
			}
		}
	}
	return append(errors, warnings...)
}

func (m Machine) isRoot() bool { return m.UID == 0 }
