package kube

import "golang.org/x/sys/unix"

// UnneededCapabilities returns the capabilities that are used neither by the control plane nor by
// the FlexVolume drivers that it calls to attach volumes. Drivers need all other capabilities: they
// load modules, create devices and mount file systems.
//
// Containerd and the node keep all capabilities, because a privileged container has the same
// capabilities as containerd.
func UnneededCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_AUDIT_CONTROL, unix.CAP_AUDIT_READ, unix.CAP_AUDIT_WRITE, unix.CAP_BLOCK_SUSPEND, unix.CAP_BPF,
		unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_NET_BROADCAST,
		unix.CAP_PERFMON, unix.CAP_SYSLOG, unix.CAP_SYS_BOOT, unix.CAP_SYS_PACCT, unix.CAP_SYS_PTRACE,
		unix.CAP_SYS_TIME, unix.CAP_SYS_TTY_CONFIG, unix.CAP_WAKE_ALARM,
	}
}
