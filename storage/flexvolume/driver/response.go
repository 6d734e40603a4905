package driver

import (
	"encoding/json"
	"fmt"
	"io"
)

// The values of a response's status.
const (
	statusSuccess      = "Success"
	statusFailure      = "Failure"
	statusNotSupported = "Not supported"
)

// response is the JSON object that a driver prints.
type response struct {
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

// failure returns the response for an error. It redacts secrets, because the text appears in logs
// and events.
func failure(err error, secrets map[string]Secret) response {
	return response{Status: statusFailure, Message: redact(err.Error(), secrets)}
}

// write prints the response as one line.
func (a response) write(out io.Writer) error {
	line, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	return nil
}
