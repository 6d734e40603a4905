package flexvolume

import "time"

// Operation is a driver's first argument.
type Operation string

// The operations of the interface, in the order of a volume's lifecycle.
const (
	OpInit          Operation = "init"
	OpGetVolumeName Operation = "getvolumename"
	OpAttach        Operation = "attach"
	OpWaitForAttach Operation = "waitforattach"
	OpIsAttached    Operation = "isattached"
	OpMountDevice   Operation = "mountdevice"
	OpMount         Operation = "mount"
	OpExpandVolume  Operation = "expandvolume"
	OpExpandFS      Operation = "expandfs"
	OpUnmount       Operation = "unmount"
	OpUnmountDevice Operation = "unmountdevice"
	OpDetach        Operation = "detach"
)

// Operations returns all operations, in the order of a volume's lifecycle.
func Operations() []Operation {
	return []Operation{
		OpInit, OpGetVolumeName, OpAttach, OpWaitForAttach, OpIsAttached, OpMountDevice, OpMount,
		OpExpandVolume, OpExpandFS, OpUnmount, OpUnmountDevice, OpDetach,
	}
}

// Naming is the source of a volume's name.
type Naming string

const (
	// NamingDriver uses the driver's response to getvolumename, as the interface specifies.
	NamingDriver Naming = "driver"
	// NamingVolume ignores the driver's response to getvolumename and uses the name of the
	// PersistentVolume or of the pod's volume, as Kubernetes has done since 1.6.
	NamingVolume Naming = "pv"
)

// Settings configures the calls to one driver. The zero value selects the defaults.
type Settings struct {
	// Timeouts overrides the deadlines of operations.
	Timeouts map[Operation]time.Duration
	// Concurrency is the maximum number of concurrent calls to one driver, not counting init. The
	// default is 32.
	Concurrency int
	// VolumeName defaults to NamingDriver.
	VolumeName Naming
}

const defaultConcurrency = 32

// timeout returns the timeout of an operation. The defaults are generous, because Kubernetes has no
// timeout except ten minutes for waitforattach, and formatting a large disk takes a long time. A
// timeout is necessary only for calls that would never return.
func (s Settings) timeout(op Operation) time.Duration {
	if d := s.Timeouts[op]; d > 0 {
		return d
	}
	switch op {
	case OpInit, OpGetVolumeName, OpIsAttached:
		return time.Minute
	case OpExpandFS, OpMountDevice:
		return 30 * time.Minute
	default:
		return 10 * time.Minute
	}
}
