package cni

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/shaping"
)

// Reconcile makes a host's leases, devices, source filters and host ports consistent. It is called
// after a crash, a reboot, or the removal of the bridge or the nftables tables. It releases the
// addresses of pods whose namespaces no longer exist, and removes devices, source filters and host
// ports without a lease. It also attaches devices to the bridge again, and restores missing host
// ports. The bridge and package nat's table must exist. Reconcile returns the number of changes.
func Reconcile(ctx context.Context, c Config) (changes int, err error) {
	if err := c.validate(); err != nil {
		return 0, fmt.Errorf("reconcile network: %w", err)
	}
	unlock, err := c.leases().lockExclusive()
	if err != nil {
		return 0, err
	}
	defer unlock()

	bridge, err := findBridge(c.Bridge)
	if err != nil {
		return 0, err
	}
	devices, err := podDevices()
	if err != nil {
		return 0, err
	}
	present, err := c.attachments(bridge)
	if err != nil {
		return 0, err
	}
	owners, err := nat.Owners(ctx, c.NFTTable, c.families()...)
	if err != nil {
		return 0, err
	}
	leases, err := c.leases().list()
	if err != nil {
		return 0, err
	}

	var errs []error
	apply := func(err error) {
		changes++
		errs = append(errs, err)
	}
	hasLease := map[string]bool{}
	for _, l := range leases {
		device, exists := devices[l.Device]
		if !exists {
			apply(c.releaseLease(l))
			continue
		}
		hasLease[l.Device] = true
		if !c.isAttached(l, device, present) {
			apply(c.attachToBridge(l, bridge))
		}
		if owners[l.Device] < c.published(l) {
			apply(c.publish(l))
		}
	}
	for name, device := range devices {
		if !hasLease[name] && device.Attrs().MasterIndex == bridge.Attrs().Index {
			apply(removeVeth(name))
		}
	}
	errs = append(errs, c.removeUnused(present, leases), shaping.RemoveOrphans())
	for owner := range owners {
		if !hasLease[owner] {
			apply(c.unpublish(owner))
		}
	}
	return changes, errors.Join(errs...)
}

// releaseLease releases the address of a pod without a device. The pod's host ports then have no
// lease, so the same Reconcile call removes them.
func (c Config) releaseLease(l lease) error {
	unlock, err := c.leases().lockChange()
	if err != nil {
		return err
	}
	defer unlock()
	return c.leases().release(l.Address)
}

func podDevices() (map[string]netlink.Link, error) {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	devices := map[string]netlink.Link{}
	for _, link := range links {
		if IsPodDevice(link) {
			devices[link.Attrs().Name] = link
		}
	}
	return devices, nil
}
