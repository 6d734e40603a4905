package component

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/slipway-platform/slipway/internal/redact"
)

// State is the state of a component or of a process.
type State string

// Component states. A process is Starting, Ready (when all of its components are ready) or Failed.
const (
	Waiting  State = "waiting"  // waits for other components
	Standby  State = "standby"  // runs on another host
	Starting State = "starting" // runs, but does not serve yet
	Ready    State = "ready"    // serves
	Failed   State = "failed"   // returned an error; its process restarts
	Stopped  State = "stopped"  // stopped on request
)

// Event records a change in a component's state.
type Event struct {
	Component string `json:"part"`
	State     State  `json:"state"`
	Error     string `json:"error,omitempty"`
	// Note describes what a ready component lacks. It is "" if the component lacks nothing.
	Note string `json:"note,omitempty"`
}

// Reporter returns a function that writes events to w, one JSON object per line. The function is
// safe for concurrent use. It removes passwords from errors. It drops an event that cannot be
// written, because the reader of w has then exited, and this process exits with it.
func Reporter(w io.Writer) func(Event) {
	var mu sync.Mutex
	encoder := json.NewEncoder(w)
	return func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		event.Error = redact.Text(event.Error)
		_ = encoder.Encode(event)
	}
}
