package upgrade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// VersionFile is the path of the file with the version of Kubernetes of the control plane that was
// ready last.
type VersionFile string

// Check returns an error if a program with a version of Kubernetes must not continue with the data
// of the recorded version.
func (f VersionFile) Check(program string) error {
	recorded, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read version of the data: %w", err)
	}
	return CheckJump(strings.TrimSpace(string(recorded)), program)
}

// Former returns the recorded version if it differs from the program's, and "" otherwise.
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

// Remove removes the recorded version: the data can be of any version.
func (f VersionFile) Remove() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove version of the data: %w", err)
	}
	return nil
}
