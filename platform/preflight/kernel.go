package preflight

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Feature is a feature that the kernel must support.
type Feature string

// Features that a host requires.
const (
	Overlay    Feature = "overlay file system"
	Namespaces Feature = "network namespaces"
	Bridge     Feature = "bridge devices"
	Veth       Feature = "veth devices"
	NFTables   Feature = "nftables"
)

// modules returns the names of the kernel modules that provide a feature.
func (f Feature) modules() string {
	switch f {
	case Overlay:
		return "overlay"
	case Bridge:
		return "bridge"
	case Veth:
		return "veth"
	case NFTables:
		return "nf_tables nft_chain_nat nft_masq nft_numgen nft_fib_inet"
	}
	return ""
}

// checkKernel tests each feature by using it. This also loads the kernel modules that the host
// requires later. It tests all features even if some are missing.
func checkKernel(ctx context.Context, want Requirements, machine Machine) []Problem {
	problems := append(checkNamespaceKinds(machine), checkDevices(machine)...)
	if !machine.isRoot() {
		return problems
	}
	dir := ""
	if len(want.Directories) > 0 {
		dir = existing(want.Directories[0].Path)
	}
	for _, feature := range []Feature{Overlay, Namespaces, Bridge, Veth, NFTables} {
		if feature == Overlay && dir == "" || feature == NFTables && machine.program("nft") == "" {
			continue // there is no directory, or checkPrograms reports that nft is missing
		}
		err := machine.Try(ctx, feature, dir)
		switch {
		case err == nil:
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EROFS), errors.Is(err, errNoDirectory):
			// checkDirectories reports the details.
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
			problems = append(problems, Problem{Error, string(feature), "cannot be used by this user: " + err.Error(),
				"in a container, start the container with --privileged"})
		case feature == Overlay && machine.isOverlay(dir):
			problems = append(problems, Problem{Error, string(feature), "cannot be on the overlay file system of " + dir + ": " + err.Error(),
				"choose a directory on a disk with --data-dir, or mount a volume there"})
		default:
			problems = append(problems, Problem{Error, string(feature), "does not work: " + err.Error(), remedyFor(feature)})
		}
	}
	return problems
}

func remedyFor(feature Feature) string {
	if feature.modules() == "" {
		return "use a kernel that has it, such as Debian's or Ubuntu's"
	}
	return "modprobe --all " + feature.modules() + "\nuse a kernel that has it, such as Debian's or Ubuntu's"
}

// checkNamespaceKinds checks the namespace types that every container requires.
func checkNamespaceKinds(machine Machine) []Problem {
	var problems []Problem
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "uts"} {
		if _, err := os.Lstat(filepath.Join(machine.Root, "proc/self/ns", kind)); errors.Is(err, os.ErrNotExist) {
			problems = append(problems, Problem{Error, kind + " namespaces", "are not part of this kernel",
				"use a kernel that has them, such as Debian's or Ubuntu's"})
		}
	}
	return problems
}

// checkDevices checks device files that might be missing if the machine is itself a container.
func checkDevices(machine Machine) []Problem {
	var problems []Problem
	if _, err := os.Stat(filepath.Join(machine.Root, "dev/kmsg")); err != nil {
		problems = append(problems, Problem{Error, "device /dev/kmsg", "is missing; the kubelet reads the kernel's messages from it",
			"mknod /dev/kmsg c 1 11\nin a container, start the container with --privileged"})
	}
	if _, err := os.Stat(filepath.Join(machine.Root, "dev/loop-control")); err != nil {
		problems = append(problems, Problem{Warning, "device /dev/loop-control", "is missing; volumes in image files cannot be mounted",
			"modprobe loop"})
	}
	return problems
}
