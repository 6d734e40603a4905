package flexvolume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Capabilities are what a driver says about itself on init.
type Capabilities struct {
	// Attach: the driver has attach and detach operations. Without, only mount and unmount are called.
	Attach bool `json:"attach"`
	// SELinuxRelabel: the container runtime relabels the volume.
	SELinuxRelabel bool `json:"selinuxRelabel"`
	// SupportsMetrics: usage of the volume is that of the file system at its directory.
	SupportsMetrics bool `json:"supportsMetrics"`
	// FSGroup: ownership of the files is given to the pod's group.
	FSGroup bool `json:"fsGroup"`
	// RequiresFSResize: the file system is grown after the volume.
	RequiresFSResize bool `json:"requiresFSResize"`
}

// DefaultCapabilities are those of a driver that says nothing, as Kubernetes has them.
func DefaultCapabilities() Capabilities {
	return Capabilities{Attach: true, SELinuxRelabel: true, FSGroup: true, RequiresFSResize: true}
}

// answer is the JSON object that a driver prints. Keys are matched without regard to case, as Kubernetes does.
type answer struct {
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

// The three words of a driver's status. Their case counts.
const (
	statusSuccess      = "Success"
	statusFailure      = "Failure"
	statusNotSupported = "Not supported"
)

// capabilities merges what the driver says into the defaults; a missing or null field leaves its default.
func (a answer) capabilities() Capabilities {
	merged := DefaultCapabilities()
	if a.Capabilities == nil {
		return merged
	}
	for field, said := range map[*bool]*bool{
		&merged.Attach:           a.Capabilities.Attach,
		&merged.SELinuxRelabel:   a.Capabilities.SELinuxRelabel,
		&merged.SupportsMetrics:  a.Capabilities.SupportsMetrics,
		&merged.FSGroup:          a.Capabilities.FSGroup,
		&merged.RequiresFSResize: a.Capabilities.RequiresFSResize,
	} {
		if said != nil {
			*field = *said
		}
	}
	return merged
}

// output is what a driver printed and how it ended.
type output struct {
	stdout, stderr []byte
	exit           error // nil for exit code 0
}

// maxOutput is how much of each stream is read, in bytes. An answer has less than one thousandth of it.
const maxOutput = 1 << 20

// parse finds the answer in what a driver printed: on standard output; where that holds none, on standard error; then in both
// together, which is what Kubernetes reads. All that Kubernetes accepts is accepted; noise on standard error is no
// error beside an answer on standard output. The error says why standard output (or error, if only that has text) is no answer.
//
// hide takes secrets out of what the error quotes.
func parse(out output, hide func(string) string) (answer, *fault) {
	var texts [][]byte
	switch stdout, stderr := len(bytes.TrimSpace(out.stdout)) > 0, len(bytes.TrimSpace(out.stderr)) > 0; {
	case stdout && stderr:
		texts = [][]byte{out.stdout, out.stderr, slices.Concat(out.stdout, out.stderr), slices.Concat(out.stderr, out.stdout)}
	case stdout:
		texts = [][]byte{out.stdout}
	case stderr:
		texts = [][]byte{out.stderr}
	default:
		return answer{}, &fault{KindNoAnswer, "it printed nothing"}
	}
	var first *fault
	for _, text := range texts {
		found, problem := parseOne(text, hide)
		if problem == nil {
			return found, check(found, hide)
		}
		if first == nil || first.kind == KindNoAnswer && problem.kind != KindNoAnswer {
			first = problem
		}
	}
	return answer{}, first
}

// parseOne reads text as one JSON object with nothing around it but white space.
func parseOne(text []byte, hide func(string) string) (answer, *fault) {
	if len(text) > maxOutput {
		return answer{}, &fault{KindTooLong, fmt.Sprintf("it printed more than %d bytes", maxOutput)}
	}
	trimmed := bytes.TrimSpace(text)
	var found answer
	decoder := json.NewDecoder(bytes.NewReader(trimmed))
	var wrongType *json.UnmarshalTypeError
	switch err := decoder.Decode(&found); {
	case errors.As(err, &wrongType) && wrongType.Field == "":
		return answer{}, &fault{KindNoAnswer, "it printed JSON that is not an object"}
	case errors.As(err, &wrongType):
		return answer{}, &fault{KindWrongType, fmt.Sprintf("it answered with a %s for %q, which must be a %s",
			hide(wrongType.Value), wrongType.Field, wrongType.Type)}
	case err != nil && bytes.ContainsRune(trimmed, '{') && trimmed[0] != '{':
		return answer{}, &fault{KindNoise, "it printed text before its answer"}
	case err != nil:
		return answer{}, &fault{KindNoAnswer, "it printed no JSON: " + err.Error()}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return answer{}, &fault{KindNoise, "it printed text after its answer"}
	}
	return found, nil
}

// check refuses answers that are JSON but make no sense.
func check(a answer, hide func(string) string) *fault {
	switch {
	case a.Status != statusSuccess && a.Status != statusFailure && a.Status != statusNotSupported:
		return &fault{KindStatus, fmt.Sprintf("it answered with status %q, which must be %q, %q or %q",
			clip(hide(a.Status)), statusSuccess, statusFailure, statusNotSupported)}
	case a.VolumeNewSize < 0:
		return &fault{KindSize, fmt.Sprintf("it answered with the negative size %d", a.VolumeNewSize)}
	}
	return nil
}
