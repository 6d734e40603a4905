// Package agent makes a host part of the cluster's network and keeps it so.
//
// It waits until the control plane has given the node its subnet (spec.podCIDR), then makes the bridge that pods hang
// on, the device with the address of the pods' DNS server, and the nftables table (package nat), and at last writes the
// CNI configuration, by which the container runtime and kubelet learn that the network is ready. From then on it repairs
// what somebody changes: at once for devices and addresses, at the next periodic check for the rest.
//
// What it changes on the host, besides what Cleanup removes: net.ipv4.ip_forward becomes 1 and stays 1, since by the
// time of Cleanup other software may rely on it. Two more sysctls are the bridge's own and go with it.
//
// Beside other users of the host's firewall: kube-proxy's tables are its own. A firewall that drops forwarded traffic
// (Docker sets this policy) or incoming traffic (ufw) must let pods through, because no rule of ours can overrule a drop
// of another table: of forwarded packets, it has to accept those that come in by or go out to the bridge; of incoming
// ones, those that come in by the bridge for port 53 of the DNS address and for the API server's and kubelet's ports.
// With Docker:
//
//	iptables -I DOCKER-USER -i slipway0 -j ACCEPT
//	iptables -I DOCKER-USER -o slipway0 -j ACCEPT
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

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/nat"
)

// Agent is the part of a node that programs its network. Fields without a remark are required.
type Agent struct {
	NodeName    string               // the Node object whose podCIDR is this host's subnet
	Client      kubernetes.Interface // may read and watch that object
	Bridge      string               // device that pods hang on, such as slipway0
	NFTTable    string               // such as slipway
	ClusterCIDR netip.Prefix         // all pods of the cluster
	ServiceCIDR netip.Prefix         // all services
	ConfDir     string               // where the container runtime looks for CNI configuration
	BinDir      string               // where it looks for CNI plug-ins; slipway-cni must be there
	StateDir    string               // where the plug-in records which address is whose
	MTU         int                  // bytes; 0: that of the default route's device
	DNSDevice   string               // device for DNSIP, such as slipway-dns; with DNSIP, may be empty
	DNSIP       netip.Addr           // address of the pods' DNS server, such as 169.254.20.10
	Period      time.Duration        // between two checks that all is as it should be; 0: 30 s
}

// Name names the part.
func (a *Agent) Name() string { return "network" }

// Run sets the network up, calls ready, and keeps the network as it should be until the context ends. Pods keep their
// network when it returns. A failure of the first set-up is returned; later ones are logged, and tried again.
func (a *Agent) Run(ctx context.Context, ready func()) error {
	if err := a.prepare(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()

	subnets := make(chan netip.Prefix, 1)
	informer, err := a.watchNode(subnets)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	tasks.Go(func() { informer.RunWithContext(ctx) })
	damage, err := a.watchDevices(ctx, &tasks)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	period := a.Period
	if period == 0 {
		period = 30 * time.Second
	}
	check := time.NewTicker(period)
	defer check.Stop()

	var subnet netip.Prefix
	serving := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case subnet = <-subnets:
			slog.Info("node has a subnet", "node", a.NodeName, "podCIDR", subnet)
		case <-damage:
		case <-check.C:
		}
		if !subnet.IsValid() {
			continue
		}
		err := a.apply(ctx, subnet)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !serving:
			return fmt.Errorf("network: %w", err)
		case err != nil:
			slog.Error("cannot repair the network", "err", err)
		case !serving:
			serving = true
			ready()
		}
	}
}

// prepare checks what the agent cannot mend, and, where the bridge is missing (the machine was started anew), takes
// back the CNI configuration until the network is there.
func (a *Agent) prepare() error {
	if _, err := os.Stat(filepath.Join(a.BinDir, cni.Type)); err != nil {
		return fmt.Errorf("find CNI plug-in: %w", err)
	}
	if link, err := findDevice(a.Bridge); err != nil || link != nil {
		return err
	}
	if err := os.Remove(a.configFile()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove CNI configuration: %w", err)
	}
	return nil
}

// apply makes everything that is missing or different. It may be called again at any time.
func (a *Agent) apply(ctx context.Context, subnet netip.Prefix) error {
	if err := a.makeDevices(subnet); err != nil {
		return err
	}
	if err := a.setSysctls(); err != nil {
		return err
	}
	err := nat.Ensure(ctx, nat.Network{
		Table:       a.NFTTable,
		Bridge:      a.Bridge,
		ClusterCIDR: a.ClusterCIDR,
		ServiceCIDR: a.ServiceCIDR,
		DNSAddress:  a.DNSIP,
	})
	if err != nil {
		return err
	}
	config := a.pluginConfig(subnet)
	changed, err := cni.Sweep(ctx, config)
	if err != nil {
		return fmt.Errorf("sweep leftovers of pods: %w", err)
	}
	if changed > 0 {
		slog.Info("repaired the network of pods", "changes", changed)
	}
	return a.writeConfig(config)
}
