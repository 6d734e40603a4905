// Package agent connects a host to the cluster network and keeps it connected.
//
// It waits until the control plane has assigned the node a subnet (spec.podCIDR). It then creates
//
//   - the bridge for pods,
//   - the device with the address of the pods' DNS server,
//   - the nftables tables (packages nat and spoofcheck),
//   - the administrators' chain (package adminchain), and
//   - the routes to the pods of other hosts.
//
// The routes are direct for hosts that share a network segment with this host. Routes to all other
// hosts lead through a VXLAN device (package vxlan). Finally, the agent writes the CNI
// configuration, which signals to the container runtime and the kubelet that the network is ready.
// After that, it repairs changes to devices and addresses immediately, and other changes at the
// next periodic check.
//
// In addition to creating the objects that Cleanup removes, the agent sets net.ipv4.ip_forward to
// 1. If pods have IPv6 addresses, the agent also sets net.ipv6.conf.all.forwarding to 1, and
// changes accept_ra of the host's devices from 1 to 2. Otherwise, a host that forwards packets
// would lose the routes that its routers announce. Cleanup restores these settings. It keeps
// net.ipv4.ip_forward if a sysctl file on the host sets it, or if another program's device might
// need it. Three more sysctls belong to the bridge and are removed with it.
//
// If the host's firewall drops packets by default, the agent adds rules that accept pod traffic
// (package hostfirewall).
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/network/adminchain"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/hostfirewall"
	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// Transports for packets to other hosts.
const (
	// TransportAuto sends packets directly to hosts that share a network segment with this host,
	// and through VXLAN to all other hosts.
	TransportAuto = "auto"
	// TransportVXLAN sends all packets through VXLAN.
	TransportVXLAN = "vxlan"
	// TransportHostGateway sends all packets directly. All hosts must share a network segment.
	TransportHostGateway = "host-gw"
)

// Agent is the component that configures a node's network. All fields are required unless stated
// otherwise.
type Agent struct {
	NodeName    string               // name of the Node; its podCIDR is this host's subnet
	Client      kubernetes.Interface // can list and watch Nodes
	Bridge      string               // bridge for pods, such as slipway0
	NFTTable    string               // nftables table, such as slipway
	ServiceCIDR netip.Prefix         // addresses of all services
	// DualStack contains the networks of all pods. SecondServiceCIDR is the IPv6 service network,
	// which is required if pods have IPv6 addresses.
	DualStack         dualstack.Networks
	SecondServiceCIDR netip.Prefix
	ConfDir           string // directory of the runtime's CNI configuration
	BinDir            string // directory of CNI plugins; must contain slipway-cni
	StateDir          string // directory of the plugin's address leases
	// SysctlRecord is the path of the record of the sysctls that Cleanup restores; optional.
	SysctlRecord string
	// PolicySocket is the path of package policy's socket; optional.
	PolicySocket string
	// MTU is the MTU of the pod network, in bytes. The default is the MTU of the default route's
	// device, minus the VXLAN overhead if the agent uses VXLAN.
	MTU int
	// Transport is one of the transport constants; optional if Tunnel is nil.
	Transport string
	// Tunnel is the VXLAN device with the programs for direct connections. If it is nil, the
	// transport is TransportHostGateway.
	Tunnel *vxlan.Tunnel
	// VXLANDevice is the name of the VXLAN device, such as vxlan_sys_4789.
	VXLANDevice string
	// Network is a client that can list and watch ClusterNetworks and HostSubnets; optional if
	// Tunnel is nil.
	Network       networkclient.Interface
	DNSDevice     string        // device for DNSIP, such as slipway-dns; optional with DNSIP
	DNSIP         netip.Addr    // address of the pods' DNS server, such as 169.254.20.10
	HostPorts     []int         // TCP ports of this host that its firewall must leave open for pods
	CheckInterval time.Duration // interval between checks, greater than 0
}

// Name returns the component's name.
func (a *Agent) Name() string { return "network" }

// Run sets up the network, calls ready, and repairs the network until ctx is done. Pods keep their
// network after Run returns. Run returns an error if the first setup fails. It logs later failures
// and retries.
func (a *Agent) Run(ctx context.Context, ready func()) error {
	if err := a.prepare(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()

	subnets := make(chan netip.Prefix, 1)
	informer, peers, err := a.watchNodes(subnets)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	tasks.Go(func() { informer.RunWithContext(ctx) })
	objects, err := a.watchNetwork(ctx, &tasks)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	damage, err := a.watchDevices(ctx, &tasks)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	cluster := &cluster{nodes: informer.GetStore(), objects: objects}
	ticker := time.NewTicker(a.CheckInterval)
	defer ticker.Stop()

	var subnet netip.Prefix
	isReady := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case subnet = <-subnets:
			slog.Info("node has a subnet", "node", a.NodeName, "podCIDR", subnet)
		case <-damage:
		case <-objects.changes:
		case <-peers:
			if isReady {
				a.connectHosts(subnet, cluster)
				continue
			}
		case <-ticker.C:
		}
		if !subnet.IsValid() {
			continue
		}
		err := a.apply(ctx, subnet, cluster)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !isReady:
			return fmt.Errorf("network: %w", err)
		case err != nil:
			slog.Error("cannot repair network", "error", err)
		case !isReady:
			isReady = true
			ready()
		}
	}
}

// prepare checks the prerequisites. If the bridge is missing, for example after a reboot, prepare
// removes the CNI configuration until the network is ready.
func (a *Agent) prepare() error {
	if _, err := os.Stat(filepath.Join(a.BinDir, cni.Type)); err != nil {
		return fmt.Errorf("find CNI plugin: %w", err)
	}
	if link, err := findDevice(a.Bridge); err != nil || link != nil {
		return err
	}
	if err := os.Remove(a.configFile()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove CNI configuration: %w", err)
	}
	return nil
}

// apply creates or repairs all of the agent's objects. It is idempotent.
func (a *Agent) apply(ctx context.Context, subnet netip.Prefix, cluster *cluster) error {
	if !a.isPod(subnet.Addr()) {
		// The rules that the previous process wrote remain in effect.
		return fmt.Errorf("no network in networkConfig.clusterNetworks of master-config.yaml contains the subnet %s of this node; "+
			"restore the network on all masters, or remove the node and let it join again", subnet)
	}
	if err := a.ensureDevices(subnet); err != nil {
		return err
	}
	if err := a.setSysctls(); err != nil {
		return err
	}
	if err := a.writeTables(ctx, cluster); err != nil {
		return err
	}
	if err := a.ensureSecond(subnet); err != nil {
		return err
	}
	a.connectHosts(subnet, cluster)
	config := a.pluginConfig(subnet)
	changes, err := cni.Reconcile(ctx, config)
	if err != nil {
		return fmt.Errorf("reconcile pod network: %w", err)
	}
	if changes > 0 {
		slog.Info("repaired pod network", "changes", changes)
	}
	return a.writeConfig(config)
}

// writeTables writes the nftables tables of each IP family.
func (a *Agent) writeTables(ctx context.Context, cluster *cluster) error {
	network := nat.Network{
		Table:       a.NFTTable,
		VXLANDevice: a.VXLANDevice,
		Bridge:      a.Bridge,
		Pods:        a.DualStack.Prefixes4(),
		ServiceCIDR: a.ServiceCIDR,
		DNSAddress:  a.DNSIP,
		VXLANPort:   a.vxlanPort(cluster),
	}
	if a.usesVXLAN() && a.Transport == TransportVXLAN {
		network.OnlyDevice = a.VXLANDevice
	}
	networks := []nat.Network{network}
	if a.DualStack.Enabled() {
		network.Pods, network.ServiceCIDR, network.DNSAddress = []netip.Prefix{a.DualStack.IPv6.Prefix}, a.SecondServiceCIDR, netip.Addr{}
		networks = append(networks, network)
	}
	for _, network := range networks {
		if err := nat.Ensure(ctx, network); err != nil {
			return err
		}
		if err := adminchain.Ensure(ctx, a.Bridge, network.Pods); err != nil {
			return err
		}
		exceptions := hostfirewall.Exceptions{Bridge: a.Bridge, DNSAddress: a.DNSIP, Ports: a.HostPorts}
		if err := hostfirewall.Ensure(ctx, network.Family(), exceptions); err != nil {
			return err
		}
	}
	return nil
}
