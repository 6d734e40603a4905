package flexvolume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// keptFile describes a kept driver, beside its executable.
const keptFile = ".kept.json"

// kept is the content of keptFile.
type kept struct {
	Version      string       `json:"version"`
	Capabilities Capabilities `json:"capabilities"`
}

// keptDir is where the copy of a driver is. The path ends like that of the installed one, because drivers read it.
func keptDir(keepDir, driver string) string { return filepath.Join(keepDir, EscapeName(driver)) }

// keep copies the executable of a driver that has just been initialized. An executable that has changed since its init is left; the
// scan that notices the change leads to another init.
func (r *Registry) keep(driver *Driver) error {
	if r.KeepDir == "" {
		return nil
	}
	dir := keptDir(r.KeepDir, driver.name)
	if have, err := readKept(dir); err == nil && have == (kept{driver.version, driver.caps}) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory for copy: %w", err)
	}
	copied, err := copyAside(driver.path, dir)
	if err != nil {
		return err
	}
	defer os.Remove(copied.path)
	if copied.version != driver.version {
		return nil
	}
	description, err := json.Marshal(kept{driver.version, driver.caps})
	if err != nil {
		return fmt.Errorf("describe copy: %w", err)
	}
	// The description goes first and comes last, so that it never describes another version.
	if err := os.Remove(filepath.Join(dir, keptFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace copy: %w", err)
	}
	if err := os.Rename(copied.path, executable(r.KeepDir, driver.name)); err != nil {
		return fmt.Errorf("replace copy: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, keptFile), description, 0o600); err != nil {
		return fmt.Errorf("describe copy: %w", err)
	}
	return nil
}

// copyAside copies a file under a temporary name into dir, executable for its owner, and computes its version on the way.
func copyAside(path, dir string) (installed, error) {
	source, err := os.Open(path)
	if err != nil {
		return installed{}, fmt.Errorf("copy driver: %w", err)
	}
	defer source.Close()
	target, err := os.CreateTemp(dir, ".copy-")
	if err != nil {
		return installed{}, fmt.Errorf("copy driver: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(target, hash), source)
	err = errors.Join(err, target.Chmod(0o700), target.Sync(), target.Close())
	if err != nil {
		os.Remove(target.Name())
		return installed{}, fmt.Errorf("copy driver: %w", err)
	}
	return installed{path: target.Name(), version: hex.EncodeToString(hash.Sum(nil))}, nil
}

// readKept reads the description of a kept driver.
func readKept(dir string) (kept, error) {
	content, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil {
		return kept{}, fmt.Errorf("read kept driver: %w", err)
	}
	have := kept{Capabilities: DefaultCapabilities()}
	if err := json.Unmarshal(content, &have); err != nil {
		return kept{}, fmt.Errorf("read kept driver %s: %w", dir, err)
	}
	return have, nil
}

// loadKept makes an entry of every kept driver, as if it had just been removed; the first scan finds those that have not been.
func (r *Registry) loadKept() error {
	if r.KeepDir == "" {
		return nil
	}
	dirs, err := os.ReadDir(r.KeepDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read kept drivers: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []error
	for _, dir := range dirs {
		if !dir.IsDir() || strings.HasPrefix(dir.Name(), ".") {
			continue
		}
		have, err := readKept(filepath.Join(r.KeepDir, dir.Name()))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		e := r.newEntry(UnescapeName(dir.Name()))
		e.State = StateRemoved
		e.Driver = r.newDriver(e)
		e.Driver.version, e.Driver.caps = have.Version, have.Capabilities
		r.useKept(e)
	}
	return errors.Join(problems...)
}

// useKept lets the last usable version of a driver run from where it is: the kept copy where another version, or none, is installed;
// nowhere if there is no copy and the driver has been removed.
func (r *Registry) useKept(e *entry) {
	if e.Driver == nil || e.State == StateReady {
		return
	}
	last := *e.Driver
	last.path = executable(r.Dir, e.Name)
	if last.version != e.Version {
		have, err := readKept(keptDir(r.KeepDir, e.Name))
		switch {
		case r.KeepDir != "" && err == nil && have.Version == last.version:
			last.path = executable(r.KeepDir, e.Name)
		case e.State == StateRemoved:
			last.path = ""
		}
	}
	e.Driver = &last
}
