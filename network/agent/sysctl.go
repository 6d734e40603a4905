package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/boot"
)

// ipv6Settings is the directory of per-device IPv6 settings.
const ipv6Settings = "/proc/sys/net/ipv6/conf"

// Values of accept_ra: a device accepts router advertisements only if the host does not forward
// packets, or always.
const (
	acceptWhileHost = "1"
	acceptAlways    = "2"
)

// sysctl is a kernel setting.
type sysctl struct {
	Path string `json:"path"`
	// Previous is the value before the agent's change, and Value is the value after it.
	Previous string `json:"previous"`
	Value    string `json:"value"`
}

// sysctlRecord contains the settings as they were before the agent's changes, and the boot (package
// boot) to which they belong: a reboot resets the settings.
type sysctlRecord struct {
	Boot     string   `json:"boot"`
	Settings []sysctl `json:"settings"`
}

// forwardIPv6 makes the host forward IPv6 packets. Devices that accept router advertisements
// continue to accept them. Before the first change, forwardIPv6 records the previous settings in
// the SysctlRecord file, from which Cleanup restores them.
func (a *Agent) forwardIPv6() error {
	all := filepath.Join(ipv6Settings, "all", "forwarding")
	if readSysctl(all) == "1" {
		return nil // a device that ignores announcements already continues to ignore them
	}
	changes := []sysctl{{all, "0", "1"}}
	paths, err := filepath.Glob(filepath.Join(ipv6Settings, "*", "accept_ra"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		own := filepath.Join(filepath.Dir(path), "forwarding")
		switch device := filepath.Base(filepath.Dir(path)); {
		case device == "all" || device == "default":
		case readSysctl(own) == "1": // the device ignores announcements already
			changes = append(changes, sysctl{own, "1", "1"})
		case readSysctl(path) == acceptWhileHost:
			changes = append(changes, sysctl{path, acceptWhileHost, acceptAlways})
		}
	}
	if err := a.record(changes); err != nil {
		return err
	}
	// Change the devices first, because they lose their routes when the host forwards packets.
	for _, change := range append(changes[1:], changes[0]) {
		if err := setSysctl(change.Path, change.Value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// record saves the settings, unless there already is a record of this boot. There is one if another
// program has reset the settings since the agent changed them.
func (a *Agent) record(changes []sysctl) error {
	if a.SysctlRecord == "" {
		return nil
	}
	id, err := boot.ID("/proc")
	if err != nil {
		return err
	}
	if present, err := readRecord(a.SysctlRecord); err == nil && present.Boot == id {
		return nil
	}
	content, err := json.Marshal(sysctlRecord{id, changes})
	if err != nil {
		return fmt.Errorf("record sysctls: %w", err)
	}
	return atomicfile.Write(a.SysctlRecord, content, 0o600)
}

// readRecord reads a record, which is empty if the file does not exist.
func readRecord(path string) (record sysctlRecord, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read record of sysctls %q: %w", path, err)
	}
	return record, nil
}

// restoreSysctls restores the settings in a record of this boot, and removes the record. It keeps a
// setting that has been changed again since.
func restoreSysctls(path string) error {
	if path == "" {
		return nil
	}
	id, err := boot.ID("/proc")
	if err != nil {
		return err
	}
	record, err := readRecord(path)
	if err != nil {
		return err
	}
	if record.Boot != id {
		record.Settings = nil
	}
	var unchanged []sysctl
	for _, change := range record.Settings {
		if readSysctl(change.Path) == change.Value {
			unchanged = append(unchanged, change)
		}
	}
	var errs []error
	for _, change := range unchanged { // the first setting overwrites the settings of devices
		if err := setSysctl(change.Path, change.Previous); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of sysctls: %w", err)
	}
	return nil
}

// readSysctl returns a setting, or "" if it does not exist, for example because its device is gone.
func readSysctl(path string) string {
	value, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(value))
}

func setSysctl(path, value string) error {
	present, err := os.ReadFile(path)
	if err == nil && string(bytes.TrimSpace(present)) != value {
		err = os.WriteFile(path, []byte(value), 0o644)
	}
	if err != nil {
		return fmt.Errorf("set sysctl: %w", err)
	}
	return nil
}
