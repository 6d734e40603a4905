package platform

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/redact"
)

// State is where a part or a process is in its life.
type State string

// The states of a part. A process is Starting, Ready (all of its parts are) or Failed.
const (
	Waiting  State = "waiting"  // for another part
	Starting State = "starting" // it runs and does not serve yet
	Ready    State = "ready"    // it serves
	Failed   State = "failed"   // it ended with an error and will be started again
	Stopped  State = "stopped"  // it was told to
)

// Event is what a process tells the supervisor about one of its parts: one JSON object a line.
type Event struct {
	Part  string `json:"part"`
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
	// Note is what a part that is ready does without; "" when it lacks nothing.
	Note string `json:"note,omitempty"`
}

// reporter writes events as lines; several parts report at once. A supervisor that has gone away ends
// this process by a signal, so a line that cannot be written is dropped.
// Passwords in an error stay here.
func reporter(w io.Writer) func(Event) {
	var mu sync.Mutex
	encoder := json.NewEncoder(w)
	return func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		event.Error = redact.Text(event.Error)
		_ = encoder.Encode(event)
	}
}

// Status is what `slipway status -o json` prints. Times are RFC 3339.
type Status struct {
	Version   string          `json:"version"`
	DataDir   string          `json:"dataDir"`
	Started   time.Time       `json:"started"`
	Ready     bool            `json:"ready"`
	Processes []ProcessStatus `json:"processes"`
	Nodes     []NodeStatus    `json:"nodes,omitempty"`
	// Notes are what the administrator should know of the cluster's objects.
	Notes []string `json:"notes,omitempty"`
}

// ProcessStatus is one process below the supervisor. Restarts counts how often it was started again;
// LastError is what it ended with last.
type ProcessStatus struct {
	Name      string       `json:"name"`
	PID       int          `json:"pid,omitempty"`
	State     State        `json:"state"`
	Since     time.Time    `json:"since"`
	Restarts  int          `json:"restarts"`
	LastError string       `json:"lastError,omitempty"`
	Parts     []PartStatus `json:"parts"`
}

// PartStatus is one part. StartSeconds is how long it took from its start to ready.
type PartStatus struct {
	Name         string    `json:"name"`
	After        []string  `json:"after,omitempty"`
	State        State     `json:"state"`
	Since        time.Time `json:"since"`
	StartSeconds float64   `json:"startSeconds,omitempty"`
	Error        string    `json:"error,omitempty"`
	// Note is what a part that is ready does without.
	Note string `json:"note,omitempty"`

	started time.Time
}

// NodeStatus is one node as the API shows it.
type NodeStatus struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"`
	Address string `json:"address,omitempty"`
	Pods    int    `json:"pods"`
	// Refuses says why the node takes no more pods, ready or not, and what to do about it.
	Refuses []string `json:"refuses,omitempty"`
}

// apply records an event about a part of the process.
func (p *ProcessStatus) apply(event Event, now time.Time) {
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Name != event.Part {
			continue
		}
		if part.Note = event.Note; part.State == event.State && event.State == Ready {
			continue // only the note is new
		}
		part.State, part.Since, part.Error = event.State, now, event.Error
		switch event.State {
		case Starting:
			part.started, part.StartSeconds = now, 0
		case Ready:
			part.StartSeconds = now.Sub(part.started).Seconds()
		}
	}
	p.State = Ready
	for _, part := range p.Parts {
		if part.State != Ready {
			p.State = Starting
		}
	}
	if p.State == Ready {
		p.Since = now
	}
}
