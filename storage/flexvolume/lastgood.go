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

// lastGoodFile is the name of the file that describes a last-good copy. It is in the same directory
// as the copy.
const lastGoodFile = ".kept.json"

// lastGood is the content of lastGoodFile.
type lastGood struct {
	Version      string       `json:"version"`
	Capabilities Capabilities `json:"capabilities"`
}

// lastGoodDir returns the directory of a driver's last-good copy. The path has the same last
// elements as the path of the installed driver, because drivers parse it.
func lastGoodDir(keepDir, driver string) string { return filepath.Join(keepDir, EscapeName(driver)) }

// saveLastGood copies the executable of a driver whose init has succeeded. If the executable has
// changed since the init, saveLastGood copies nothing: the next scan detects the change and starts
// another init.
func (r *Registry) saveLastGood(driver *Driver) error {
	if r.KeepDir == "" {
		return nil
	}
	dir := lastGoodDir(r.KeepDir, driver.name)
	if existing, err := readLastGood(dir); err == nil && existing == (lastGood{driver.version, driver.caps}) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory for copy: %w", err)
	}
	temp, err := copyToTemp(driver.path, dir)
	if err != nil {
		return err
	}
	defer os.Remove(temp.path)
	if temp.version != driver.version {
		return nil
	}
	description, err := json.Marshal(lastGood{driver.version, driver.caps})
	if err != nil {
		return fmt.Errorf("encode description of copy: %w", err)
	}
	// Remove the description first and write it last, so that it never describes a different
	// version.
	if err := os.Remove(filepath.Join(dir, lastGoodFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace copy: %w", err)
	}
	if err := os.Rename(temp.path, executable(r.KeepDir, driver.name)); err != nil {
		return fmt.Errorf("replace copy: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, lastGoodFile), description, 0o600); err != nil {
		return fmt.Errorf("write description of copy: %w", err)
	}
	return nil
}

// copyToTemp copies a file to a temporary file in dir that its owner can execute, and computes its
// version.
func copyToTemp(path, dir string) (driverFile, error) {
	source, err := os.Open(path)
	if err != nil {
		return driverFile{}, fmt.Errorf("copy driver: %w", err)
	}
	defer source.Close()
	target, err := os.CreateTemp(dir, ".copy-")
	if err != nil {
		return driverFile{}, fmt.Errorf("copy driver: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(target, hash), source)
	err = errors.Join(err, target.Chmod(0o700), target.Sync(), target.Close())
	if err != nil {
		os.Remove(target.Name())
		return driverFile{}, fmt.Errorf("copy driver: %w", err)
	}
	return driverFile{path: target.Name(), version: hex.EncodeToString(hash.Sum(nil))}, nil
}

// readLastGood reads the description of a last-good copy.
func readLastGood(dir string) (lastGood, error) {
	content, err := os.ReadFile(filepath.Join(dir, lastGoodFile))
	if err != nil {
		return lastGood{}, fmt.Errorf("read last-good driver copy: %w", err)
	}
	desc := lastGood{Capabilities: DefaultCapabilities()}
	if err := json.Unmarshal(content, &desc); err != nil {
		return lastGood{}, fmt.Errorf("read last-good copy of driver %s: %w", dir, err)
	}
	return desc, nil
}

// loadLastGood creates an entry for each last-good copy, in the state of a removed driver. The
// first scan updates the entries of drivers that are still installed.
func (r *Registry) loadLastGood() error {
	if r.KeepDir == "" {
		return nil
	}
	dirs, err := os.ReadDir(r.KeepDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read last-good driver copies: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, dir := range dirs {
		if !dir.IsDir() || strings.HasPrefix(dir.Name(), ".") {
			continue
		}
		desc, err := readLastGood(filepath.Join(r.KeepDir, dir.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e := r.newEntry(UnescapeName(dir.Name()))
		e.State = StateRemoved
		e.Driver = r.newDriver(e)
		e.Driver.version, e.Driver.caps = desc.Version, desc.Capabilities
		r.useLastGood(e)
	}
	return errors.Join(errs...)
}

// useLastGood sets the path from which a driver's last good version runs. If another version or no
// version is installed, this is the path of the last-good copy. If the driver has been removed and
// has no copy, the path is empty.
func (r *Registry) useLastGood(e *entry) {
	if e.Driver == nil || e.State == StateReady {
		return
	}
	last := *e.Driver
	last.path = executable(r.Dir, e.Name)
	if last.version != e.Version {
		desc, err := readLastGood(lastGoodDir(r.KeepDir, e.Name))
		switch {
		case r.KeepDir != "" && err == nil && desc.Version == last.version:
			last.path = executable(r.KeepDir, e.Name)
		case e.State == StateRemoved:
			last.path = ""
		}
	}
	e.Driver = &last
}
