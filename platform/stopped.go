package platform

import (
	"slices"

	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// The components of a control plane that an administrator can stop. In OpenShift 3, each is a
// static pod whose manifest is moved away.
const (
	// ControllersPart are the components that one of several masters runs: controllers and
	// scheduler.
	ControllersPart = "controllers"
	// EtcdPart is etcd. The API server and everything else wait for it.
	EtcdPart = "etcd"
)

// StoppableParts returns the components that an administrator can stop.
func StoppableParts() []string { return []string{ControllersPart, EtcdPart} }

func (h *Host) stoppedFile() string { return h.path("master", "stopped.json") }

// StoppedParts returns the components that the administrator has stopped on this host.
func (h *Host) StoppedParts() ([]string, error) { return record.ReadStopped(h.stoppedFile()) }

// SetStopped records whether a component is stopped. It takes effect at the next start of the
// control plane.
func (h *Host) SetStopped(part string, stopped bool) error {
	return record.SetStopped(h.stoppedFile(), part, stopped)
}

// gate returns the gate that admits the component of an entry, or nil if the component always runs.
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
