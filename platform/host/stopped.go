package host

import "github.com/slipway-platform/slipway/platform/record"

// Control plane components that an administrator can stop. In OpenShift 3, each of them is a static
// pod, which the administrator stops by moving its manifest to another directory.
const (
	// ControllersPart contains the components that only one of several masters runs: the
	// controllers and the scheduler.
	ControllersPart = "controllers"
	// EtcdPart is etcd. The API server and all other components wait for it.
	EtcdPart = "etcd"
)

// StoppableParts returns the components that an administrator can stop.
func StoppableParts() []string { return []string{ControllersPart, EtcdPart} }

func (h *Host) stoppedFile() string { return h.Path("master", "stopped.json") }

// StoppedParts returns the components that the administrator has stopped on this host.
func (h *Host) StoppedParts() ([]string, error) { return record.ReadStopped(h.stoppedFile()) }

// SetStopped records whether a component is stopped. The change takes effect when the control plane
// next starts.
func (h *Host) SetStopped(part string, stopped bool) error {
	return record.SetStopped(h.stoppedFile(), part, stopped)
}
