package flexvolume

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// failuresDir is the directory below Registry.KeepDir that records the last failed call of each
// driver, for administrators and other processes.
const failuresDir = ".failures"

// Failure is a failed driver call.
type Failure struct {
	Operation Operation `json:"operation"`
	Kind      Kind      `json:"kind"`
	// Message is the complete error message, including the driver's output. Secrets are redacted.
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

func failureFile(keepDir, driver string) string {
	return filepath.Join(keepDir, failuresDir, EscapeName(driver)+".json")
}

// LastFailure returns the last failed call of any version of a driver, as recorded by the Registry
// that uses keepDir. The error is os.ErrNotExist if no call has failed since the driver was
// installed.
func LastFailure(keepDir, driver string) (Failure, error) {
	var last Failure
	content, err := os.ReadFile(failureFile(keepDir, driver))
	if err != nil {
		return Failure{}, fmt.Errorf("read last failure of FlexVolume driver %q: %w", driver, err)
	}
	if err := json.Unmarshal(content, &last); err != nil {
		return Failure{}, fmt.Errorf("parse last failure of FlexVolume driver %q: %w", driver, err)
	}
	return last, nil
}

// recordFailure writes a call's error to a file. It ignores canceled calls, because they are not
// driver failures. The record does not need to survive a power loss, so the file is not synced:
// syncing it would delay the caller. Write errors are ignored, because the caller receives the
// call's error anyway.
func recordFailure(file string, callErr error) {
	var failed *CallError
	if file == "" || !errors.As(callErr, &failed) || failed.Kind == KindCanceled {
		return
	}
	content, err := json.Marshal(Failure{Operation: failed.Operation, Kind: failed.Kind, Message: failed.Error(), Time: time.Now()})
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	// Calls to the same driver can fail concurrently.
	temporary, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return
	}
	_, err = temporary.Write(content)
	if errors.Join(err, temporary.Close()) != nil || os.Rename(temporary.Name(), file) != nil {
		_ = os.Remove(temporary.Name())
	}
}
