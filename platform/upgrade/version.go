package upgrade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// VersionFile is the path of the file that records the Kubernetes version of the last control plane
// that became ready.
type VersionFile string

// Check returns an error if a program with the given Kubernetes version must not use data of the
// recorded version.
func (f VersionFile) Check(program string) error {
	recorded, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data version: %w", err)
	}
	return CheckJump(strings.TrimSpace(string(recorded)), program)
}

// Former returns the recorded version if it differs from the program's version. Otherwise, it
// returns "".
func (f VersionFile) Former(program string) string {
	recorded, err := os.ReadFile(string(f))
	if text := strings.TrimSpace(string(recorded)); err == nil && text != program {
		return text
	}
	return ""
}

// Record replaces the recorded version.
func (f VersionFile) Record(version string) error {
	return atomicfile.Write(string(f), []byte(version+"\n"), 0o600)
}

// Remove removes the recorded version. Call it after the data has been replaced, for example with a
// backup, because the new data might have a different version.
func (f VersionFile) Remove() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove data version: %w", err)
	}
	return nil
}
