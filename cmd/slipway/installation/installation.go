// Package installation installs Slipway as a systemd service for a host or a load balancer, along
// with manual pages and shell completions. It also removes them.
package installation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Service is the name of a host's systemd service, and LoadBalancer is the name of a load
// balancer's service. A machine has only one of them.
const (
	Service      = "slipway"
	LoadBalancer = "slipway-lb"
)

// Paths relative to Machine.Root. recordPath is outside the data directory, so that the record
// still exists after an administrator has deleted the data directory.
const (
	recordPath  = "usr/local/share/slipway/installation.json"
	programPath = "usr/local/bin/slipway"
	clientPath  = "usr/local/bin/oc"
	systemdPath = "run/systemd/system"
)

// unitPath returns the path of a service's unit file.
func unitPath(service string) string { return "etc/systemd/system/" + service + ".service" }

// Machine is a machine on which Slipway is installed.
type Machine struct {
	// Root is the root directory of the machine's file system.
	Root string
	// Systemctl runs systemctl.
	Systemctl func(ctx context.Context, args ...string) error
}

// Host returns the machine on which this process runs.
func Host() Machine {
	return Machine{Root: "/", Systemctl: func(ctx context.Context, args ...string) error {
		output, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("run systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
		}
		return nil
	}}
}

// Request describes what to install.
type Request struct {
	// Program is the path of the program to copy.
	Program string
	// DataDir is the data directory. Config is the configuration file, or "". Both paths are absolute.
	DataDir, Config string
	// LoadBalancer contains the flags of `slipway lb run`. If it is nil, the service runs a host.
	LoadBalancer []string
	// Commands maps each program to the command for which manual pages and completions are created.
	Commands map[string]*cobra.Command
}

// record lists the installed files. Install writes it before the files, so that Remove finds all
// files even if Install was interrupted.
type record struct {
	DataDir string   `json:"dataDir"`
	Files   []string `json:"files"`
	// Service is empty in records of earlier versions.
	Service string `json:"service,omitempty"`
}

// service returns the name of the requested service.
func (r Request) service() string {
	if r.LoadBalancer != nil {
		return LoadBalancer
	}
	return Service
}

// file is a file to install. If target is set, the file is a symbolic link to target.
type file struct {
	path    string
	content []byte
	mode    fs.FileMode
	target  string
}

// Installed reports whether the service is installed for a data directory.
func (m Machine) Installed(dataDir string) (bool, error) {
	path, err := filepath.Abs(dataDir)
	if err != nil {
		return false, fmt.Errorf("find data directory: %w", err)
	}
	r, err := m.read()
	return r != nil && filepath.Clean(r.DataDir) == path, err
}

// Install installs the files and enables the service without starting it. It returns the paths of
// the files. It replaces only files that an earlier installation created.
func (m Machine) Install(ctx context.Context, request Request) ([]string, error) {
	if _, err := os.Stat(m.path(systemdPath)); err != nil {
		return nil, errors.New("systemd does not run on this machine; start Slipway with `slipway up`, or run `slipway run` as your own service")
	}
	previous, err := m.read()
	if err != nil {
		return nil, err
	}
	if previous == nil {
		previous = &record{}
	} else if filepath.Clean(previous.DataDir) != filepath.Clean(request.DataDir) {
		return nil, fmt.Errorf("the service is already installed for the data directory %s: first remove it with: slipway uninstall --data-dir %[1]s", previous.DataDir)
	} else if existing := cmp.Or(previous.Service, Service); existing != request.service() {
		return nil, fmt.Errorf("the service %s is already installed: a machine can run either a cluster host or a load balancer", existing)
	}
	files, err := m.files(request)
	if err != nil {
		return nil, err
	}
	next := record{DataDir: request.DataDir, Service: request.service()}
	for _, f := range files {
		if !slices.Contains(previous.Files, f.path) {
			if err := m.checkFree(f.path, request.Program); err != nil {
				return nil, err
			}
		}
		next.Files = append(next.Files, f.path)
	}
	all := slices.Concat(next.Files, previous.Files)
	slices.Sort(all)
	next.Files = slices.Compact(all)
	if err := m.write(next); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := m.put(f); err != nil {
			return nil, fmt.Errorf("install %s: %w", f.path, err)
		}
	}
	return next.Files, errors.Join(m.Systemctl(ctx, "daemon-reload"), m.Systemctl(ctx, "enable", request.service()))
}

// checkFree returns an error if path exists, unless path is a link to the program or to oc, as
// created by `slipway up --link`.
func (m Machine) checkFree(path, program string) error {
	if _, err := os.Lstat(m.path(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if target, err := os.Readlink(m.path(path)); err == nil && filepath.Dir(target) == filepath.Dir(program) {
		return nil
	}
	return fmt.Errorf("/%s exists, and slipway install did not create it: remove it first", path)
}

// Remove stops and removes a data directory's service, and removes all installed files. It reports
// whether the service was installed.
func (m Machine) Remove(ctx context.Context, dataDir string) (bool, error) {
	if installed, err := m.Installed(dataDir); err != nil || !installed {
		return false, err
	}
	r, err := m.read()
	if err != nil {
		return false, err
	}
	var errs []error
	service := cmp.Or(r.Service, Service)
	if _, err := os.Lstat(m.path(unitPath(service))); err == nil {
		errs = append(errs, m.Systemctl(ctx, "disable", "--now", service))
	}
	for _, path := range r.Files {
		if err := os.Remove(m.path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove installed file: %w", err))
		}
	}
	errs = append(errs, m.Systemctl(ctx, "daemon-reload"))
	if err := errors.Join(errs...); err != nil {
		return true, err
	}
	return true, os.RemoveAll(filepath.Dir(m.path(recordPath)))
}

func (m Machine) path(path string) string { return filepath.Join(m.Root, path) }

// read returns the record, or nil and no error if nothing is installed.
func (m Machine) read() (*record, error) {
	content, err := os.ReadFile(m.path(recordPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read installation record: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("read installation record %q: %w", m.path(recordPath), err)
	}
	return r, nil
}

func (m Machine) write(r record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path(recordPath)), 0o755); err != nil {
		return fmt.Errorf("record installation: %w", err)
	}
	return atomicfile.Write(m.path(recordPath), append(content, '\n'), 0o644)
}

// put writes a file or creates a link. It replaces an existing file or link at the same path.
func (m Machine) put(f file) error {
	path := m.path(f.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if f.target == "" {
		return atomicfile.Write(path, f.content, f.mode)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(f.target, path)
}
