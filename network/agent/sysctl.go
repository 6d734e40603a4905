package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/boot"
)

const (
	// ipv4Forwarding is the setting that makes the host forward IPv4 packets.
	ipv4Forwarding = "/proc/sys/net/ipv4/ip_forward"
	// ipv6Settings is the directory of per-device IPv6 settings.
	ipv6Settings = "/proc/sys/net/ipv6/conf"
)

// Values of accept_ra. With acceptWhileHost, a device accepts router advertisements only while the
// host does not forward packets. With acceptAlways, it always accepts them.
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

// sysctlRecord contains the settings' values before the agent's changes. Boot is the ID of the boot
// (package boot) in which the agent changed them, because a reboot resets the settings.
type sysctlRecord struct {
	Boot     string   `json:"boot"`
	Settings []sysctl `json:"settings"`
}

// forwardIPv4 makes the host forward IPv4 packets. If file is not empty, forwardIPv4 records the
// previous setting in it before the first change, so that Cleanup can restore the setting.
func forwardIPv4(file string) error {
	change := sysctl{ipv4Forwarding, "0", "1"}
	if readSysctl(change.Path) == change.Value {
		return nil
	}
	if err := record(file, []sysctl{change}); err != nil {
		return err
	}
	return setSysctl(change.Path, change.Value)
}

// forwardIPv6 makes the host forward IPv6 packets. Devices that accept router advertisements
// continue to accept them. If file is not empty, forwardIPv6 records the previous settings in it
// before the first change, so that Cleanup can restore them.
func forwardIPv6(file string) error {
	all := filepath.Join(ipv6Settings, "all", "forwarding")
	if readSysctl(all) == "1" {
		return nil // the host already forwards packets, so accept_ra needs no change
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
		case readSysctl(own) == "1": // forwards packets, so it ignores advertisements
			changes = append(changes, sysctl{own, "1", "1"})
		case readSysctl(path) == acceptWhileHost:
			changes = append(changes, sysctl{path, acceptWhileHost, acceptAlways})
		}
	}
	if err := record(file, changes); err != nil {
		return err
	}
	// Change the devices before the host forwards packets. Otherwise, they would lose their routes.
	for _, change := range append(changes[1:], changes[0]) {
		if err := setSysctl(change.Path, change.Value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// record adds settings to the record in a file. If the current boot's record already contains a
// setting, record keeps that entry, because it has the value before the agent's first change.
func record(file string, changes []sysctl) error {
	if file == "" {
		return nil
	}
	id, err := boot.ID("/proc")
	if err != nil {
		return err
	}
	present, err := readRecord(file)
	if err != nil || present.Boot != id {
		present = sysctlRecord{Boot: id}
	}
	for _, change := range changes {
		if !slices.ContainsFunc(present.Settings, func(s sysctl) bool { return s.Path == change.Path }) {
			present.Settings = append(present.Settings, change)
		}
	}
	content, err := json.Marshal(present)
	if err != nil {
		return fmt.Errorf("record sysctls: %w", err)
	}
	return atomicfile.Write(file, content, 0o600)
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

// restoreSysctls restores the settings in the record of the current boot, and removes the record.
// It skips settings that another program has changed since. It also skips IPv4 forwarding if the
// host might need it without Slipway.
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
	forwards, err := forwardsForOthers()
	if err != nil {
		return err
	}
	var unchanged []sysctl
	for _, change := range record.Settings {
		if readSysctl(change.Path) == change.Value && !(forwards && change.Path == ipv4Forwarding) {
			unchanged = append(unchanged, change)
		}
	}
	var errs []error
	for _, change := range unchanged { // forwarding first: it overwrites the devices' settings
		if err := setSysctl(change.Path, change.Previous); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove sysctl record: %w", err)
	}
	return nil
}

// configuredForwarding matches a line of a sysctl file that makes the host forward IPv4 packets.
var configuredForwarding = regexp.MustCompile(`(?m)^\s*-?net[./]ipv4[./](ip_forward|conf[./]all[./]forwarding)\s*=\s*1\s*$`)

// forwardsForOthers reports whether the host might have to forward packets without Slipway. This is
// the case if a sysctl file enables forwarding, or if the host has a device for containers, virtual
// machines or a VPN. Cleanup has already removed Slipway's own devices.
func forwardsForOthers() (bool, error) {
	for _, pattern := range []string{"/etc/sysctl.conf", "/etc/sysctl.d/*.conf", "/run/sysctl.d/*.conf", "/usr/lib/sysctl.d/*.conf"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return false, err
		}
		for _, file := range files {
			if content, err := os.ReadFile(file); err == nil && configuredForwarding.Match(content) {
				return true, nil
			}
		}
	}
	links, err := netlinksafe.LinkList()
	if err != nil {
		return false, fmt.Errorf("list devices: %w", err)
	}
	return slices.ContainsFunc(links, func(l netlink.Link) bool {
		return slices.Contains([]string{"bridge", "wireguard", "tuntap", "ipvlan", "macvlan"}, l.Type())
	}), nil
}

// readSysctl returns a setting, or "" if the setting does not exist, for example because its device
// has been removed.
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
