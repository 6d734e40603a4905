package platform

import (
	"slices"

	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/supervisor/component"
)

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

func (h *Host) stoppedFile() string { return h.path("master", "stopped.json") }

// StoppedParts returns the components that the administrator has stopped on this host.
func (h *Host) StoppedParts() ([]string, error) { return record.ReadStopped(h.stoppedFile()) }

// SetStopped records whether a component is stopped. The change takes effect when the control plane
// next starts.
func (h *Host) SetStopped(part string, stopped bool) error {
	return record.SetStopped(h.stoppedFile(), part, stopped)
}

// gate returns the gate that starts and stops an entry's component, or nil if the component always
// runs.
func (h *Host) gate(e entry) (component.Gate, error) {
	if e.group == "" && e.name != EtcdPart || e.group == imageRegistry && !h.sharesRegistry() {
		return nil, nil
	}
	parts, err := h.StoppedParts()
	if err != nil {
		return nil, err
	}
	switch {
	case e.group != "" && e.group != imageRegistry && slices.Contains(parts, ControllersPart), e.name == EtcdPart && slices.Contains(parts, EtcdPart):
		return component.Closed{}, nil
	case e.group != "" && h.leadership != nil:
		return h.leadership.Group(e.group), nil
	}
	return nil, nil
}
