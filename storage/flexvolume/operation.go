package flexvolume

import "time"

// Operation is the first argument of a driver.
type Operation string

// The operations of the interface, in the order of a volume's life.
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

// Operations are all operations, in the order of a volume's life.
func Operations() []Operation {
	return []Operation{
		OpInit, OpGetVolumeName, OpAttach, OpWaitForAttach, OpIsAttached, OpMountDevice, OpMount,
		OpExpandVolume, OpExpandFS, OpUnmount, OpUnmountDevice, OpDetach,
	}
}

// Naming says where the name of a volume comes from.
type Naming string

const (
	// NamingDriver takes the driver's answer to getvolumename, as the interface documents it.
	NamingDriver Naming = "driver"
	// NamingVolume ignores that answer and takes the name of the PersistentVolume or of the pod's volume, as Kubernetes
	// has done since 1.6.
	NamingVolume Naming = "pv"
)

// Settings adjust how one driver is called. The zero value has the defaults.
type Settings struct {
	// Timeouts replace the deadlines of single operations.
	Timeouts map[Operation]time.Duration
	// Concurrency bounds the calls of one driver that run at the same time, init not counted; 0 is 32.
	Concurrency int
	// VolumeName is NamingDriver where it is empty.
	VolumeName Naming
}

const defaultConcurrency = 32

// timeout is the deadline of an operation. The defaults are generous, because Kubernetes has none (but ten minutes for
// waitforattach) and a driver may format a large disk; they exist to end what would never end.
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
