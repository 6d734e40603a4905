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

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/nat"
)

// lease records what one pod has on this host. It is written before anything is made and removed after everything is
// gone, so it never lacks what has to be undone.
type lease struct {
	Address   netip.Addr `json:"address"`
	Device    string     `json:"device"` // host end of the veth; empty when the record could not be read
	Container string     `json:"container"`
	Interface string     `json:"interface"`
	Ports     []nat.Port `json:"ports,omitempty"`
}

// leases is a folder with one file for each lease, named like its address, so that listing the folder shows which
// addresses are in use.
//
// Two locks guard it, both released by the kernel when a process dies. "active" is shared by calls for single pods and
// excluded by GC and Sweep, which would otherwise take a pod in the making for a leftover. "change" is held for moments
// around a change of the folder or of the host ports.
type leases struct {
	dir    string
	subnet netip.Prefix
}

const (
	suffix   = ".json"
	lastFile = "last"
)

func (s leases) share() (unlock func(), err error)   { return s.lock("active.lock", unix.LOCK_SH) }
func (s leases) exclude() (unlock func(), err error) { return s.lock("active.lock", unix.LOCK_EX) }
func (s leases) change() (unlock func(), err error)  { return s.lock("change.lock", unix.LOCK_EX) }

func (s leases) lock(name string, how int) (func(), error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create lease folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of leases: %w", err)
	}
	for {
		if err = unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock leases %q: %w", s.dir, err)
	}
	return func() { file.Close() }, nil
}

// reserve takes a free address for a pod and records it. Addresses are handed out in turn, so that one that was just
// given back rests as long as possible.
func (s leases) reserve(l lease) (lease, error) {
	unlock, err := s.change()
	if err != nil {
		return lease{}, err
	}
	defer unlock()

	all, err := s.all()
	if err != nil {
		return lease{}, err
	}
	used := map[netip.Addr]bool{Gateway(s.subnet): true}
	for _, other := range all {
		if other.Device == l.Device {
			return lease{}, fmt.Errorf("reserve address for container %q: it has %s already", l.Container, other.Address)
		}
		used[other.Address] = true
	}
	l.Address, err = s.free(used)
	if err != nil {
		return lease{}, err
	}
	if err := s.write(l.Address.String()+suffix, l); err != nil {
		return lease{}, err
	}
	return l, s.write(lastFile, l.Address)
}

// free returns the first unused address after the one handed out last.
func (s leases) free(used map[netip.Addr]bool) (netip.Addr, error) {
	next := Gateway(s.subnet)
	if data, err := os.ReadFile(filepath.Join(s.dir, lastFile)); err == nil {
		var last netip.Addr
		if json.Unmarshal(data, &last) == nil && s.subnet.Contains(last) {
			next = last
		}
	}
	for range capacity(s.subnet) + 2 {
		next = next.Next()
		if !s.subnet.Contains(next) || !s.subnet.Contains(next.Next()) { // outside, or the broadcast address
			next = Gateway(s.subnet)
			continue
		}
		if !used[next] {
			return next, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free address in %s: %d are in use", s.subnet, len(used)-1)
}

// write replaces a file of the folder. The caller holds the lock "change", so one name for the draft is enough. It does
// not wait for the disk, which would slow down the start of each pod: no pod outlives a loss of power, and the files'
// names, or their absence, then say enough.
func (s leases) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode lease: %w", err)
	}
	draft := filepath.Join(s.dir, "draft")
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	if err := os.Rename(draft, filepath.Join(s.dir, name)); err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	return nil
}

// all returns every lease. One whose file was damaged (the machine lost power) has an address only.
func (s leases) all() ([]lease, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var all []lease
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
		all = append(all, l)
	}
	return all, nil
}

// find returns the lease of a device; ok is false when there is none.
func (s leases) find(device string) (l lease, ok bool, err error) {
	all, err := s.all()
	for _, l := range all {
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
