// Package network serves the API group network.openshift.io. The group contains the objects of
// OpenShift 3's software-defined network: cluster networks, host subnets, and the network IDs and
// egress firewalls of projects.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 8; the wire types are
// defined in github.com/openshift/api/network/v1.
package network

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/dualstack"
)

// Feature returns the network.openshift.io API group so that it can be registered with the API
// server. network is the content of the "default" ClusterNetwork. dualStack contains the pods' IPv6
// networks, if pods have IPv6 addresses.
func Feature(network networkv1.ClusterNetwork, dualStack dualstack.Networks) apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: networkv1.GroupVersion,
		Install:      networkv1.Install,
		Legacy:       networkv1.DeprecatedInstallWithoutGroup,
		Resources:    []apiserver.Served{clusterNetworks(network), hostSubnets(dualStack), netNamespaces(network.PluginName), egressNetworkPolicies()},
	}}}
}

func clusterNetworks(configured networkv1.ClusterNetwork) apiserver.Served {
	type network = *networkv1.ClusterNetwork
	return apiserver.Resource[network]{
		Plural: "clusternetworks",
		Validate: func(_ context.Context, network, _ *networkv1.ClusterNetwork) field.ErrorList {
			return validateClusterNetwork(network, configured)
		},
		Columns: []apiserver.Column[network]{
			{Name: "Cluster Networks", Description: "Networks of pods, with the length of a host's subnet", Value: func(n network) any {
				var texts []string
				for _, entry := range n.ClusterNetworks {
					texts = append(texts, fmt.Sprintf("%s:%d", entry.CIDR, entry.HostSubnetLength))
				}
				return strings.Join(texts, ", ")
			}},
			{Name: "Service Network", Description: "Network of services", Value: func(n network) any { return n.ServiceNetwork }},
			{Name: "Plugin Name", Description: "Network plugin", Value: func(n network) any { return n.PluginName }},
		},
	}
}

func hostSubnets(dualStack dualstack.Networks) apiserver.Served {
	type subnet = *networkv1.HostSubnet
	return apiserver.Resource[subnet]{
		Plural: "hostsubnets", Validate: validateHostSubnet,
		Columns: []apiserver.Column[subnet]{
			{Name: "Host", Description: "Name of the node", Value: func(s subnet) any { return s.Host }},
			{Name: "Host IP", Description: "Address of the node", Value: func(s subnet) any { return s.HostIP }},
			{Name: "Subnet", Description: "Network of the node's pods", Value: func(s subnet) any { return subnets(s, dualStack) }},
			{Name: "Egress CIDRs", Description: "Ranges of egress addresses that the node can have", Value: func(s subnet) any { return list(s.EgressCIDRs) }},
			{Name: "Egress IPs", Description: "Egress addresses on the node", Value: func(s subnet) any { return list(s.EgressIPs) }},
		},
	}
}

// subnets formats a host's subnet. The type has no field for an IPv6 subnet, so subnets appends the
// node's IPv6 subnet if the node has one.
func subnets(s *networkv1.HostSubnet, dualStack dualstack.Networks) string {
	subnet, err := netip.ParsePrefix(s.Subnet)
	if err != nil || s.Annotations[networkv1.NodeUIDAnnotation] == "" || !dualStack.Subnet(subnet).IsValid() {
		return s.Subnet
	}
	return s.Subnet + ", " + dualStack.Subnet(subnet).String()
}

func netNamespaces(pluginName string) apiserver.Served {
	type namespace = *networkv1.NetNamespace
	return apiserver.Resource[namespace]{
		Plural: "netnamespaces",
		Validate: func(_ context.Context, namespace, old *networkv1.NetNamespace) field.ErrorList {
			return validateNetNamespace(namespace, old, pluginName)
		},
		Columns: []apiserver.Column[namespace]{
			{Name: "NetID", Description: "Network ID of the project", Value: func(n namespace) any { return int64(n.NetID) }},
			{Name: "Egress IPs", Description: "Source addresses of the project's outgoing traffic", Value: func(n namespace) any { return list(n.EgressIPs) }},
		},
	}
}

func egressNetworkPolicies() apiserver.Served {
	return apiserver.Resource[*networkv1.EgressNetworkPolicy]{
		Plural: "egressnetworkpolicies", Namespaced: true, Validate: validateEgressNetworkPolicy,
	}
}

// list formats strings as OpenShift 3 does: ["192.0.2.1", "192.0.2.2"].
func list[T ~string](values []T) string {
	if len(values) == 0 {
		return "[]"
	}
	var texts []string
	for _, value := range values {
		texts = append(texts, fmt.Sprintf("%q", string(value)))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
