package driver

import (
	"encoding/json"
	"fmt"
	"io"
)

// The words of an answer's status.
const (
	success      = "Success"
	failed       = "Failure"
	notSupported = "Not supported"
)

// answer is what a driver prints.
type answer struct {
	Status        string        `json:"status"`
	Message       string        `json:"message,omitempty"`
	Device        string        `json:"device,omitempty"`
	VolumeName    string        `json:"volumeName,omitempty"`
	Attached      *bool         `json:"attached,omitempty"`
	Capabilities  *capabilities `json:"capabilities,omitempty"`
	VolumeNewSize int64         `json:"volumeNewSize,omitempty"`
}

type capabilities struct {
	Attach           bool `json:"attach"`
	SELinuxRelabel   bool `json:"selinuxRelabel"`
	SupportsMetrics  bool `json:"supportsMetrics"`
	FSGroup          bool `json:"fsGroup"`
	RequiresFSResize bool `json:"requiresFSResize"`
}

// failure is the answer to an error, with secrets taken out of its text: it ends up in logs and events.
func failure(err error, secrets map[string]Secret) answer {
	return answer{Status: failed, Message: hide(err.Error(), secrets)}
}

// write prints the answer as one line.
func (a answer) write(out io.Writer) error {
	line, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
