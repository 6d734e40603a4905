package flexvolume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Capabilities holds the capabilities that a driver reports on init.
type Capabilities struct {
	// Attach is set if the driver supports attach and detach operations. If it is not set, only
	// mount and unmount are called.
	Attach bool `json:"attach"`
	// SELinuxRelabel is set if the container runtime relabels the volume.
	SELinuxRelabel bool `json:"selinuxRelabel"`
	// SupportsMetrics is set if the usage of the file system at the volume's directory is the
	// volume's usage.
	SupportsMetrics bool `json:"supportsMetrics"`
	// FSGroup is set if the group of the volume's files is changed to the pod's fsGroup.
	FSGroup bool `json:"fsGroup"`
	// RequiresFSResize is set if the file system must also be expanded after the volume has been
	// expanded.
	RequiresFSResize bool `json:"requiresFSResize"`
}

// DefaultCapabilities returns Kubernetes' defaults for a driver that reports no capabilities.
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

// The values of a driver's status. They are case-sensitive.
const (
	statusSuccess      = "Success"
	statusFailure      = "Failure"
	statusNotSupported = "Not supported"
)

// capabilities returns the defaults, overridden by the reported capabilities. A missing or null
// field keeps its default.
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

// output holds a driver's output and exit status.
type output struct {
	stdout, stderr []byte
	exit           error // nil for exit code 0
}

// maxOutput is the maximum number of bytes that are read from each stream. A normal response is a
// thousand times smaller.
const maxOutput = 1 << 20

// parse finds the response in a driver's output. It accepts all output that Kubernetes accepts. It
// tries standard output, then standard error, then the concatenation of both, which Kubernetes
// reads. It ignores noise on standard error if standard output contains a response. The error
// describes standard output, or standard error if only standard error contains text.
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

// parseOne parses text that consists of one JSON object, optionally surrounded by white space.
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

// check returns an error for a response with an invalid status or size.
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
