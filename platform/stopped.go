package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// The parts of a control plane that an administrator can stop. In OpenShift 3, each is a static pod
// whose manifest is moved away.
const (
	// ControllersPart are the components that one of several masters runs: controllers and
	// scheduler.
	ControllersPart = "controllers"
	// EtcdPart is etcd. The API server and everything else wait for it.
	EtcdPart = "etcd"
)

// StoppableParts returns the parts that an administrator can stop.
func StoppableParts() []string { return []string{ControllersPart, EtcdPart} }

func (h *Host) stoppedFile() string { return h.path("master", "stopped.json") }

// StoppedParts returns the parts that the administrator has stopped on this host.
func (h *Host) StoppedParts() ([]string, error) {
	data, err := os.ReadFile(h.stoppedFile())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record of stopped parts: %w", err)
	}
	var parts []string
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("read record of stopped parts %q: %w; remove the file", h.stoppedFile(), err)
	}
	return parts, nil
}

// SetStopped records whether a part is stopped. It takes effect at the next start of the control
// plane.
func (h *Host) SetStopped(part string, stopped bool) error {
	parts, err := h.StoppedParts()
	if err != nil {
		return err
	}
	parts = slices.DeleteFunc(parts, func(other string) bool { return other == part })
	if stopped {
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		err := os.Remove(h.stoppedFile())
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return fmt.Errorf("encode record of stopped parts: %w", err)
	}
	return atomicfile.Write(h.stoppedFile(), data, 0o600)
}

// gate returns what admits the component of an entry; nil if it always runs.
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
		return closedGate{}, nil
	case e.group != "" && h.leadership != nil:
		return h.leadership.Group(e.group), nil
	}
	return nil, nil
}

// closedGate admits no component.
type closedGate struct{}

// Wait calls standby and waits until ctx ends.
func (closedGate) Wait(ctx context.Context, standby func()) error {
	standby()
	<-ctx.Done()
	return ctx.Err()
}

var _ component.Gate = closedGate{}
