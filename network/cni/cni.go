// Package cni is Slipway's CNI plugin, which connects a pod's network namespace to the cluster
// network.
//
// It implements version 1.1 of the CNI specification (and accepts configurations of version 1.0):
// ADD, DEL, CHECK, GC, STATUS and VERSION. The agent creates the bridge and the nftables table, and
// writes the configuration that the plugin reads from standard input.
//
// A pod receives a veth device, whose host end is a port of the bridge, and one address with a
// full-length prefix. The pod's only neighbor is the gateway, whose address belongs to the bridge.
// Therefore, the host routes even the packets between two of its pods. As a result, conntrack sees
// both directions of every connection, and service addresses work between pods on one host. This
// does not depend on whether the kernel passes bridged frames to its firewall
// (bridge-nf-call-iptables).
//
// The plugin records a pod's address lease before it creates any object, and deletes the lease
// after it has removed all objects. The lease contains the device's name, which is derived from the
// container. The kernel removes the device with the pod's namespace. Therefore, after a crash at
// any step, Reconcile finds all unused objects.
package cni

import (
	"errors"
	"fmt"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// Type is the plugin's name in a network configuration, and the name of its executable.
const Type = "slipway-cni"

// Main handles one call to the plugin. It reads the command and its arguments from the environment,
// and the configuration from standard input. Main exits if the call fails.
func Main() {
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add:    add,
		Del:    del,
		Check:  check,
		GC:     gc,
		Status: status,
	}, version.PluginSupports("1.0.0", "1.1.0"), "CNI plugin "+Type)
}

// call is a call to the plugin for one pod.
type call struct {
	config Config
	args   *skel.CmdArgs
	device string // the host end of the pod's veth device
	leases leases
}

func newCall(args *skel.CmdArgs) (*call, error) {
	config, err := parse(args.StdinData)
	if err != nil {
		return nil, err
	}
	return &call{
		config: config,
		args:   args,
		device: deviceName(args.ContainerID, args.IfName),
		leases: config.leases(),
	}, nil
}

func del(args *skel.CmdArgs) error {
	c, err := newCall(args)
	if err != nil {
		return err
	}
	unlock, err := c.leases.lockShared()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(c.removeMacvlan(), c.config.detach(c.device, len(c.config.RuntimeConfig.PortMappings) > 0))
}

func gc(args *skel.CmdArgs) error {
	config, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	validDevices := map[string]bool{}
	for _, a := range config.ValidAttachments {
		validDevices[deviceName(a.ContainerID, a.IfName)] = true
	}
	unlock, err := config.leases().lockExclusive()
	if err != nil {
		return err
	}
	defer unlock()

	leases, err := config.leases().list()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range leases {
		if l.Device != "" && !validDevices[l.Device] {
			errs = append(errs, config.detach(l.Device, len(l.Ports) > 0))
		}
	}
	return errors.Join(errs...)
}

func status(args *skel.CmdArgs) error {
	config, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if _, err := findBridge(config.Bridge); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, err.Error(), "the network agent has not created the bridge yet")
	}
	leases, err := config.leases().list()
	if err != nil {
		return err
	}
	if len(leases) >= capacity(config.PodCIDR) {
		return types.NewError(types.ErrLimitedConnectivity, fmt.Sprintf("no free address in %s", config.PodCIDR), "")
	}
	return nil
}
