// Package cni is Slipway's CNI plug-in: it gives a pod's network namespace its address and its way out.
//
// It follows the CNI specification 1.1 (and serves configurations of 1.0): ADD, DEL, CHECK, GC, STATUS and VERSION. The
// agent makes the bridge and the nftables table, and writes the configuration that reaches the plug-in on standard input.
//
// A pod gets one device, a veth whose other end is a port of the bridge, and one address with a full-length prefix: its
// only neighbour is the bridge's gateway address, and even two pods of one host reach each other through the host's
// routing. So connection tracking sees both directions of every connection, and a service address works between pods of
// one host whether or not the kernel passes bridged frames to its firewall (bridge-nf-call-iptables).
//
// What a pod has is recorded in a lease before it is made and forgotten after it is gone. The record names the device,
// whose name follows from the container, and the device dies with the pod's namespace; so after a crash at any step
// Sweep finds what nobody uses.
package cni

import (
	"errors"
	"fmt"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// Type is the plug-in's name in a network configuration, and the name of its program.
const Type = "slipway-cni"

// Main serves one call of the plug-in: the command and its arguments come from the environment, the configuration from
// standard input. It ends the process when the call fails.
func Main() {
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add:    add,
		Del:    del,
		Check:  check,
		GC:     gc,
		Status: status,
	}, version.PluginSupports("1.0.0", "1.1.0"), "CNI plug-in "+Type)
}

// call is one call for one pod.
type call struct {
	config Config
	args   *skel.CmdArgs
	device string // host end of the pod's veth
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
	unlock, err := c.leases.share()
	if err != nil {
		return err
	}
	defer unlock()
	return c.config.detach(c.device, len(c.config.RuntimeConfig.PortMappings) > 0)
}

func gc(args *skel.CmdArgs) error {
	config, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	valid := map[string]bool{}
	for _, a := range config.ValidAttachments {
		valid[deviceName(a.ContainerID, a.IfName)] = true
	}
	unlock, err := config.leases().exclude()
	if err != nil {
		return err
	}
	defer unlock()

	all, err := config.leases().all()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range all {
		if l.Device != "" && !valid[l.Device] {
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
		return types.NewError(types.ErrPluginNotAvailable, err.Error(), "the network agent has not made the bridge yet")
	}
	all, err := config.leases().all()
	if err != nil {
		return err
	}
	if len(all) >= capacity(config.PodCIDR) {
		return types.NewError(types.ErrLimitedConnectivity, fmt.Sprintf("no free address in %s", config.PodCIDR), "")
	}
	return nil
}
