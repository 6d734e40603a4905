package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/filelock"
	"github.com/slipway-platform/slipway/network/nat"
)

// lease records the resources of one pod on this host. It is written before the first resource is
// created and removed after the last resource is removed, so it always lists all resources to
// remove.
type lease struct {
	Address netip.Addr `json:"address"`
	// SecondAddress is the IPv6 address. It is invalid if the host had no IPv6 subnet.
	SecondAddress netip.Addr `json:"secondAddress,omitzero"`
	Device        string     `json:"device"` // host end of the veth; empty if the file is corrupt
	Container     string     `json:"container"`
	Interface     string     `json:"interface"`
	Pod           podName    `json:"pod,omitzero"`
	Ports         []nat.Port `json:"ports,omitempty"`
}

// leases is a directory with one file per lease. The name of the file is the lease's address.
//
// Two locks protect the directory. The kernel releases them when the process exits. Calls for
// single pods hold the "active" lock as a shared lock. GC and Reconcile hold it as an exclusive
// lock; otherwise, they would remove a pod that is being created. The "change" lock is held briefly
// to change the directory or the host ports.
type leases struct {
	dir    string
	subnet netip.Prefix
	second netip.Prefix // IPv6 subnet; optional
}

const (
	suffix   = ".json"
	lastFile = "last"
)

func (s leases) lockShared() (unlock func(), err error) {
	return s.lock("active.lock", filelock.Shared)
}
func (s leases) lockExclusive() (unlock func(), err error) {
	return s.lock("active.lock", filelock.Exclusive)
}
func (s leases) lockChange() (unlock func(), err error) {
	return s.lock("change.lock", filelock.Exclusive)
}

func (s leases) lock(name string, mode filelock.Mode) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create lease directory: %w", err)
	}
	unlock, err = filelock.Lock(filepath.Join(s.dir, name), mode)
	if err != nil {
		return nil, fmt.Errorf("lock leases: %w", err)
	}
	return unlock, nil
}

// reserve allocates an address for a pod and records the lease. It allocates addresses in order, so
// that a released address is reused as late as possible.
func (s leases) reserve(l lease) (lease, error) {
	unlock, err := s.lockChange()
	if err != nil {
		return lease{}, err
	}
	defer unlock()

	existing, err := s.list()
	if err != nil {
		return lease{}, err
	}
	inUse := map[netip.Addr]bool{Gateway(s.subnet): true}
	for _, e := range existing {
		if e.Device == l.Device {
			return lease{}, fmt.Errorf("reserve address for container %q: it already has %s", l.Container, e.Address)
		}
		inUse[e.Address] = true
	}
	l.Address, err = s.free(inUse)
	if err != nil {
		return lease{}, err
	}
	if s.second.IsValid() {
		l.SecondAddress = dualstack.Address(s.subnet, s.second, l.Address)
	}
	if err := s.write(l.Address.String()+suffix, l); err != nil {
		return lease{}, err
	}
	return l, s.write(lastFile, l.Address)
}

// free returns the first unused address after the last allocated address.
func (s leases) free(inUse map[netip.Addr]bool) (netip.Addr, error) {
	next := Gateway(s.subnet)
	if data, err := os.ReadFile(filepath.Join(s.dir, lastFile)); err == nil {
		var previous netip.Addr
		if json.Unmarshal(data, &previous) == nil && s.subnet.Contains(previous) {
			next = previous
		}
	}
	for range capacity(s.subnet) + 2 {
		next = next.Next()
		// The address is outside the subnet, or is the broadcast address.
		if !s.subnet.Contains(next) || !s.subnet.Contains(next.Next()) {
			next = Gateway(s.subnet)
			continue
		}
		if !inUse[next] {
			return next, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free address in %s: %d are in use", s.subnet, len(inUse)-1)
}

// write replaces a file in the directory. The caller must hold the "change" lock, so temporary
// files can all have the same name. write does not sync the file, because syncing would slow down
// the start of each pod. After a power loss, no pod exists anymore, so the file names, which
// contain the addresses, are sufficient for the cleanup.
func (s leases) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode lease: %w", err)
	}
	temp := filepath.Join(s.dir, "draft")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(s.dir, name)); err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	return nil
}

// list returns all leases. A lease whose file is corrupt, for example after a power loss, has only
// an address.
func (s leases) list() ([]lease, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var result []lease
	for _, entry := range entries {
		name, isLease := strings.CutSuffix(entry.Name(), suffix)
		address, err := netip.ParseAddr(name)
		if !isLease || err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read lease: %w", err)
		}
		var l lease
		if err := json.Unmarshal(data, &l); err != nil || l.Address != address {
			l = lease{Address: address}
		}
		result = append(result, l)
	}
	return result, nil
}

// find returns a device's lease. ok is false if the device has no lease.
func (s leases) find(device string) (l lease, ok bool, err error) {
	leases, err := s.list()
	for _, l := range leases {
		if l.Device == device {
			return l, true, nil
		}
	}
	return lease{}, false, err
}

func (s leases) release(address netip.Addr) error {
	err := os.Remove(filepath.Join(s.dir, address.String()+suffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release address: %w", err)
	}
	return nil
}
