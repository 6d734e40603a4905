package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/hosts"
	networkcontroller "github.com/slipway-platform/slipway/controller/network"
	"github.com/slipway-platform/slipway/controller/nodegroup"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// hosts returns the controllers for hosts that join this host's cluster.
func (h *Host) hosts() (component.Component, error) {
	return &hosts.Controllers{Deps: h.deps, RemoveMaster: h.removeMaster, DualStack: h.Master.DualStack().Enabled()}, nil
}

// hostOptions returns the options for hosts that join this host's cluster.
func (h *Host) hostOptions() hosts.Options {
	pods := h.Master.PodNetworks()
	var claimable []netip.Prefix
	if h.Master.HasOtherNetwork() {
		claimable = pods
	}
	return hosts.Options{
		Reserved:  h.PKISpec().ServerHosts(),
		Networks:  slices.Concat(pods, h.Master.ServiceNetworks()),
		Pods:      claimable,
		DualStack: h.Master.DualStack(),
		Authority: func() ([]byte, error) { return os.ReadFile(h.Credentials.CA.Cert) },
		Response:  h.joinResponse,
		DNSDomain: h.Node.DNSDomain,
		OwnNode:   h.Node.NodeName,
		Addresses: h.HostAddresses,
		Master:    h.admitMaster,
	}
}

// joinResponse returns the response that describes the cluster to a joining host.
func (h *Host) joinResponse() (join.Response, error) {
	settings, err := h.Master.NodeSettings()
	if err != nil {
		return join.Response{}, err
	}
	services, err := os.ReadFile(h.Credentials.ServiceCA)
	if err != nil {
		return join.Response{}, fmt.Errorf("read service CA: %w", err)
	}
	_, port := h.Master.APIAddress()
	differ := h.settings != nil && h.settings.Differ()
	response := join.Response{
		Settings: settings, SettingsDiffer: differ || !h.networksInForce(), ServiceCA: string(services),
		Masters: []string{net.JoinHostPort(h.Address.String(), strconv.Itoa(port))},
	}
	if h.Master.Slipway.Registry.Disabled {
		return response, nil
	}
	response.Registry, err = h.LastRegistryAddress()
	return response, err
}

// nodeGroups returns the controller that applies node group configurations to nodes.
func (h *Host) nodeGroups() (component.Component, error) {
	return &nodegroup.Controllers{Deps: h.deps}, nil
}

// checkGroup validates a node group's configuration.
func checkGroup(content []byte) error {
	_, err := config.DecodeGroup(content)
	return err
}

// networksInForce reports whether the cluster uses the pod networks in this master's configuration.
// The control plane rejects networks that omit the subnet of a host.
func (h *Host) networksInForce() bool {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	inForce, err := networkcontroller.InForce(ctx, h.networkClient, h.Master.NetworkObject())
	return err == nil && inForce
}
