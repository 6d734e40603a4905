package flexvolume

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// failuresDir is where the last failed call of each driver is noted, below Registry.KeepDir, for people who look at the drivers of a
// host from outside of the processes that call them.
const failuresDir = ".failures"

// Failure is a call of a driver that failed.
type Failure struct {
	Operation Operation `json:"operation"`
	Kind      Kind      `json:"kind"`
	// Message is the whole error, with what the driver said and without secrets.
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

func failureFile(keepDir, driver string) string {
	return filepath.Join(keepDir, failuresDir, EscapeName(driver)+".json")
}

// LastFailure is the last failed call of a driver, of whichever version, that a Registry with this KeepDir has noted. The error is os.ErrNotExist
// where no call has failed since the driver was installed.
func LastFailure(keepDir, driver string) (Failure, error) {
	var last Failure
	content, err := os.ReadFile(failureFile(keepDir, driver))
	if err != nil {
		return Failure{}, fmt.Errorf("read last failure of FlexVolume driver %q: %w", driver, err)
	}
	if err := json.Unmarshal(content, &last); err != nil {
		return Failure{}, fmt.Errorf("read last failure of FlexVolume driver %q: %w", driver, err)
	}
	return last, nil
}

// noteFailure notes the error of a call in a file, if that is what it is: a caller that gave up is no failure of the driver. The note need not outlive a
// loss of power and is therefore not synced, which would delay the caller; one that cannot be written is left out, because the error goes to the caller anyway.
func noteFailure(file string, problem error) {
	var failed *CallError
	if file == "" || !errors.As(problem, &failed) || failed.Kind == KindCanceled {
		return
	}
	content, err := json.Marshal(Failure{Operation: failed.Operation, Kind: failed.Kind, Message: failed.Error(), Time: time.Now()})
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	// Calls of one driver may fail at the same time.
	temporary, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return
	}
	_, err = temporary.Write(content)
	if errors.Join(err, temporary.Close()) != nil || os.Rename(temporary.Name(), file) != nil {
		_ = os.Remove(temporary.Name())
	}
}
