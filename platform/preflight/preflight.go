// Package preflight checks a machine before any process starts on it. It reports all problems that
// would prevent a host from working, each with a remedy. It checks programs, kernel features,
// cgroups, memory, disks, ports and a few settings.
package preflight

import (
	"context"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Requirements contains the requirements of a host that its machine must meet. They are derived
// from the configuration.
type Requirements struct {
	// NodeName is the name that the node registers with.
	NodeName string
	// Programs lists the programs that must be in PATH.
	Programs []Program
	// ImagePrograms lists the programs from which the host creates images.
	ImagePrograms []Program
	// Ports lists the ports that the host's components bind.
	Ports []Port
	// Directories lists the directories that the host writes to. The first is the data directory.
	// Kernel features are tested in the data directory.
	Directories []Directory
	// Sockets lists the paths of the Unix sockets that the host creates.
	Sockets []string
	// Memory is the memory that must be available, in bytes.
	Memory uint64
}

// Program is a program and the Debian or Ubuntu package that contains it.
type Program struct{ Name, Package string }

// Programs returns the programs that a host runs.
func Programs() []Program {
	return []Program{
		{"nft", "nftables"},
		{"mount", "mount"},
		{"umount", "mount"},
		{"losetup", "mount"},
		{"mkfs.ext4", "e2fsprogs"},
	}
}

// ImagePrograms returns the programs from which a host creates the localhost/slipway-tools image.
func ImagePrograms() []Program {
	return []Program{{"busybox", "busybox-static"}}
}

// Port is an address that a component binds to.
type Port struct {
	// Use is the purpose of the port, such as "API".
	Use string
	// Network is "tcp" or "udp".
	Network string
	Address netip.AddrPort
	// Setting is the configuration key for the address. File is the file that contains the setting.
	Setting, File string
}

// Directory is a directory that the host writes to. It might not exist yet.
type Directory struct {
	Path string
	// Free is the minimum free disk space, in bytes.
	Free uint64
	// Programs means that programs in the directory are executed.
	Programs bool
}

// Severity reports whether a host can work despite a problem.
type Severity string

// Problem severities.
const (
	Error   Severity = "error"   // the host does not work until the problem is fixed
	Warning Severity = "warning" // the host works with limitations
)

// Problem is a requirement that the machine does not meet.
type Problem struct {
	Severity Severity
	// Subject identifies the affected object, such as "program nft" or "port 8443".
	Subject string
	// Text describes the problem.
	Text string
	// Remedy describes how to fix the problem. If possible, it is a command.
	Remedy string
}

// Machine provides the state of the machine to the checks. ThisMachine returns the real machine.
type Machine struct {
	// Root is the directory that contains proc, sys, dev and etc.
	Root string
	// UID is the effective user ID.
	UID int
	// Path is the list of directories that contain programs, as in the PATH environment variable.
	Path string
	// Now is the machine's current time.
	Now time.Time
	// Try uses a kernel feature and returns an error if it does not work. dir is a working
	// directory.
	Try func(ctx context.Context, feature Feature, dir string) error
	// Statfs returns information about a file system.
	Statfs func(path string, fs *unix.Statfs_t) error
	// Bind binds an address and releases it immediately.
	Bind func(ctx context.Context, network string, address netip.AddrPort) error
}

// ThisMachine returns the machine on which the program runs.
func ThisMachine() Machine {
	return Machine{
		Root: "/", UID: os.Geteuid(), Path: os.Getenv("PATH"), Now: time.Now(),
		Try: try, Statfs: unix.Statfs, Bind: bind,
	}
}

// Run returns every problem that a host with these requirements would have on the machine, errors
// first. It reverts all its changes before it returns. Without root permissions, it reports that
// root is required, and only those problems that a user without root permissions can detect.
func Run(ctx context.Context, want Requirements, machine Machine) []Problem {
	var errors, warnings []Problem
	for _, check := range []func(context.Context, Requirements, Machine) []Problem{
		checkUser, checkPrograms, checkImagePrograms, checkKernel, checkCgroups, checkDirectories, checkSockets,
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
