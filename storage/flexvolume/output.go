package flexvolume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Capabilities are the capabilities that a driver reports on init.
type Capabilities struct {
	// Attach means that the driver supports attach and detach operations. If false, only mount and
	// unmount are called.
	Attach bool `json:"attach"`
	// SELinuxRelabel means that the container runtime relabels the volume.
	SELinuxRelabel bool `json:"selinuxRelabel"`
	// SupportsMetrics means that the usage of the file system at the volume's directory is the
	// volume's usage.
	SupportsMetrics bool `json:"supportsMetrics"`
	// FSGroup means that the group of the volume's files is changed to the pod's group.
	FSGroup bool `json:"fsGroup"`
	// RequiresFSResize means that the file system must be expanded after the volume.
	RequiresFSResize bool `json:"requiresFSResize"`
}

// DefaultCapabilities returns Kubernetes' defaults, for a driver that reports nothing.
func DefaultCapabilities() Capabilities {
	return Capabilities{Attach: true, SELinuxRelabel: true, FSGroup: true, RequiresFSResize: true}
}

// response is the JSON object that a driver prints. Keys are case-insensitive, as in Kubernetes.
type response struct {
	Status       string `json:"status"`
	Message      string `json:"message"`
	Device       string `json:"device"`
	VolumeName   string `json:"volumeName"`
	Attached     bool   `json:"attached"`
	Capabilities *struct {
		Attach           *bool `json:"attach"`
		SELinuxRelabel   *bool `json:"selinuxRelabel"`
		SupportsMetrics  *bool `json:"supportsMetrics"`
		FSGroup          *bool `json:"fsGroup"`
		RequiresFSResize *bool `json:"requiresFSResize"`
	} `json:"capabilities"`
	VolumeNewSize int64 `json:"volumeNewSize"`
}

// The values of a driver's status are case-sensitive.
const (
	statusSuccess      = "Success"
	statusFailure      = "Failure"
	statusNotSupported = "Not supported"
)

// capabilities merges the reported capabilities into the defaults. A missing or null field keeps
// its default.
func (a response) capabilities() Capabilities {
	merged := DefaultCapabilities()
	if a.Capabilities == nil {
		return merged
	}
	for field, value := range map[*bool]*bool{
		&merged.Attach:           a.Capabilities.Attach,
		&merged.SELinuxRelabel:   a.Capabilities.SELinuxRelabel,
		&merged.SupportsMetrics:  a.Capabilities.SupportsMetrics,
		&merged.FSGroup:          a.Capabilities.FSGroup,
		&merged.RequiresFSResize: a.Capabilities.RequiresFSResize,
	} {
		if value != nil {
			*field = *value
		}
	}
	return merged
}

// output is a driver's output and exit status.
type output struct {
	stdout, stderr []byte
	exit           error // nil for exit code 0
}

// maxOutput is how much of each stream is read, in bytes. A normal response is a thousand times
// smaller.
const maxOutput = 1 << 20

// parse finds the response in a driver's output. It accepts all output that Kubernetes accepts. It
// tries standard output, then standard error, then both concatenated, which is what Kubernetes
// reads. It ignores noise on standard error if standard output has a response. The error describes
// standard output, or standard error if only that has text.
//
// redact removes secrets from text that the error quotes.
func parse(out output, redact func(string) string) (response, *responseError) {
	var texts [][]byte
	switch stdout, stderr := len(bytes.TrimSpace(out.stdout)) > 0, len(bytes.TrimSpace(out.stderr)) > 0; {
	case stdout && stderr:
		texts = [][]byte{out.stdout, out.stderr, slices.Concat(out.stdout, out.stderr), slices.Concat(out.stderr, out.stdout)}
	case stdout:
		texts = [][]byte{out.stdout}
	case stderr:
		texts = [][]byte{out.stderr}
	default:
		return response{}, &responseError{KindNoAnswer, "it printed nothing"}
	}
	var firstErr *responseError
	for _, text := range texts {
		resp, err := parseOne(text, redact)
		if err == nil {
			return resp, check(resp, redact)
		}
		if firstErr == nil || firstErr.kind == KindNoAnswer && err.kind != KindNoAnswer {
			firstErr = err
		}
	}
	return response{}, firstErr
}

// parseOne parses text as one JSON object, with only white space around it.
func parseOne(text []byte, redact func(string) string) (response, *responseError) {
	if len(text) > maxOutput {
		return response{}, &responseError{KindTooLong, fmt.Sprintf("it printed more than %d bytes", maxOutput)}
	}
	trimmed := bytes.TrimSpace(text)
	var resp response
	decoder := json.NewDecoder(bytes.NewReader(trimmed))
	var wrongType *json.UnmarshalTypeError
	switch err := decoder.Decode(&resp); {
	case errors.As(err, &wrongType) && wrongType.Field == "":
		return response{}, &responseError{KindNoAnswer, "it printed JSON that is not an object"}
	case errors.As(err, &wrongType):
		return response{}, &responseError{KindWrongType, fmt.Sprintf("it returned a %s for %q, which must be a %s",
			redact(wrongType.Value), wrongType.Field, wrongType.Type)}
	case err != nil && bytes.ContainsRune(trimmed, '{') && trimmed[0] != '{':
		return response{}, &responseError{KindNoise, "it printed text before its response"}
	case err != nil:
		return response{}, &responseError{KindNoAnswer, "it printed no JSON: " + err.Error()}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return response{}, &responseError{KindNoise, "it printed text after its response"}
	}
	return resp, nil
}

// check rejects responses with an invalid status or size.
func check(a response, redact func(string) string) *responseError {
	switch {
	case a.Status != statusSuccess && a.Status != statusFailure && a.Status != statusNotSupported:
		return &responseError{KindStatus, fmt.Sprintf("it returned status %q, which must be %q, %q or %q",
			clip(redact(a.Status)), statusSuccess, statusFailure, statusNotSupported)}
	case a.VolumeNewSize < 0:
		return &responseError{KindSize, fmt.Sprintf("it returned the negative size %d", a.VolumeNewSize)}
	}
	return nil
}
