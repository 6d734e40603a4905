package supervisor

import (
	"time"

	"github.com/slipway-platform/slipway/supervisor/component"
)

// Status describes a supervisor and its processes. Times are in RFC 3339 format.
type Status struct {
	Version   string          `json:"version"`
	DataDir   string          `json:"dataDir"`
	Started   time.Time       `json:"started"`
	Ready     bool            `json:"ready"`
	Processes []ProcessStatus `json:"processes"`
}

// ProcessStatus describes one process. Restarts is the number of times that the process was
// restarted, and LastError is the reason for the last restart.
type ProcessStatus struct {
	Name       string            `json:"name"`
	PID        int               `json:"pid,omitempty"`
	State      component.State   `json:"state"`
	Since      time.Time         `json:"since"`
	Restarts   int               `json:"restarts"`
	LastError  string            `json:"lastError,omitempty"`
	Components []ComponentStatus `json:"parts"`
}

// ComponentStatus describes one component. StartSeconds is the time from the start of the component
// until it was ready.
type ComponentStatus struct {
	Name         string          `json:"name"`
	After        []string        `json:"after,omitempty"`
	State        component.State `json:"state"`
	Since        time.Time       `json:"since"`
	StartSeconds float64         `json:"startSeconds,omitempty"`
	Error        string          `json:"error,omitempty"`
	// Note describes what a ready component lacks.
	Note string `json:"note,omitempty"`

	started time.Time
}

// apply updates the status with an event from one of the process's components.
func (p *ProcessStatus) apply(event component.Event, now time.Time) {
	for i := range p.Components {
		if p.Components[i].Name == event.Component {
			p.Components[i].apply(event, now)
		}
	}
	before := p.State
	p.State = component.Ready
	for _, c := range p.Components {
		if c.State != component.Ready && c.State != component.Standby {
			p.State = component.Starting
		}
	}
	if p.State == component.Ready && before != component.Ready {
		p.Since = now
	}
}

func (c *ComponentStatus) apply(event component.Event, now time.Time) {
	c.Note = event.Note
	if c.State == event.State && event.State == component.Ready {
		return // only the note has changed
	}
	c.State, c.Since, c.Error = event.State, now, event.Error
	switch event.State {
	case component.Starting:
		c.started, c.StartSeconds = now, 0
	case component.Ready:
		c.StartSeconds = now.Sub(c.started).Seconds()
	}
}
