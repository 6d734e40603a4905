package cni

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/nat"
)

// Sweep brings leases, devices and host ports of a host into agreement: after a crash, a reboot, or after somebody
// removed the bridge or the nftables table. It takes back the addresses of pods whose namespace is gone, removes
// devices and host ports without a lease, plugs devices in again that lost their bridge, and restores missing host
// ports. Bridge and table must exist. It returns how many things it changed.
func Sweep(ctx context.Context, c Config) (changed int, err error) {
	if err := c.validate(); err != nil {
		return 0, fmt.Errorf("sweep network: %w", err)
	}
	unlock, err := c.leases().exclude()
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
	owners, err := nat.Owners(ctx, c.NFTTable)
	if err != nil {
		return 0, err
	}
	all, err := c.leases().all()
	if err != nil {
		return 0, err
	}

	var errs []error
	step := func(err error) {
		changed++
		errs = append(errs, err)
	}
	leased := map[string]bool{}
	for _, l := range all {
		device, exists := devices[l.Device]
		if !exists {
			step(c.forget(l))
			continue
		}
		leased[l.Device] = true
		if device.Attrs().MasterIndex != bridge.Attrs().Index {
			step(c.plug(l.Device, bridge))
		}
		if owners[l.Device] < len(l.Ports) {
			step(c.publish(l))
		}
	}
	for name, device := range devices {
		if !leased[name] && device.Attrs().MasterIndex == bridge.Attrs().Index {
			step(unplug(name))
		}
	}
	for owner := range owners {
		if !leased[owner] {
			step(c.withdraw(owner))
		}
	}
	return changed, errors.Join(errs...)
}

// forget gives back the address of a pod without a device. Its host ports, if any, have no lease any more then and go
// in the same sweep.
func (c Config) forget(l lease) error {
	unlock, err := c.leases().change()
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
