package network

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// maxEgressRules is the maximum number of rules in an egress firewall.
const maxEgressRules = 1000

// validateClusterNetwork validates a ClusterNetwork. The ClusterNetwork named "default" is defined
// by the configuration.
func validateClusterNetwork(network *networkv1.ClusterNetwork, configured networkv1.ClusterNetwork) (errs field.ErrorList) {
	service, prefixErrs := prefix(network.ServiceNetwork, field.NewPath("serviceNetwork"))
	errs = append(errs, prefixErrs...)
	entries := network.ClusterNetworks
	at := field.NewPath("clusterNetworks")
	if len(entries) == 0 && network.Network == "" {
		errs = append(errs, field.Required(at, "name at least one network for pods"))
	}
	if network.Network != "" {
		legacy := networkv1.ClusterNetworkEntry{CIDR: network.Network, HostSubnetLength: network.HostSubnetLength}
		errs = append(errs, validateEntry(legacy, service, field.NewPath("network"), field.NewPath("hostsubnetlength"))...)
		if len(entries) > 0 && entries[0] != legacy {
			errs = append(errs, field.Invalid(at.Index(0), entries[0], "must agree with network and hostsubnetlength"))
		}
	}
	var prefixes []netip.Prefix
	for i, entry := range entries {
		errs = append(errs, validateEntry(entry, service, at.Index(i).Child("CIDR"), at.Index(i).Child("hostSubnetLength"))...)
		cidr, err := netip.ParsePrefix(entry.CIDR)
		for _, other := range prefixes {
			if err == nil && other.Overlaps(cidr) {
				errs = append(errs, field.Invalid(at.Index(i).Child("CIDR"), entry.CIDR, "overlaps with "+other.String()))
			}
		}
		prefixes = append(prefixes, cidr)
	}
	if port := network.VXLANPort; port != nil && len(validation.IsValidPortNum(int(*port))) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("vxlanPort"), *port, "must be between 1 and 65535"))
	}
	if mtu := network.MTU; mtu != nil && (*mtu < 576 || *mtu > 65536) {
		errs = append(errs, field.Invalid(field.NewPath("mtu"), *mtu, "must be between 576 and 65536"))
	}
	if network.Name == networkv1.ClusterNetworkDefault && !apiequality.Semantic.DeepEqual(networks(network), networks(&configured)) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
			"the default network cannot be changed through the API; change networkConfig in master-config.yaml and restart the control plane"))
	}
	return errs
}

// networks returns the fields of the default network that are defined by the configuration.
func networks(n *networkv1.ClusterNetwork) []any {
	return []any{n.Network, n.HostSubnetLength, n.ServiceNetwork, n.ClusterNetworks, n.PluginName, n.VXLANPort}
}

func validateEntry(entry networkv1.ClusterNetworkEntry, service netip.Prefix, at, length *field.Path) field.ErrorList {
	cidr, errs := prefix(entry.CIDR, at)
	if len(errs) > 0 {
		return errs
	}
	switch bits := cidr.Addr().BitLen() - cidr.Bits(); {
	case entry.HostSubnetLength < 2:
		errs = append(errs, field.Invalid(length, entry.HostSubnetLength, "subnet length must be at least 2"))
	case entry.HostSubnetLength > uint32(bits):
		errs = append(errs, field.Invalid(length, entry.HostSubnetLength, "subnet length is too large for the network"))
	}
	if service.IsValid() && service.Overlaps(cidr) {
		errs = append(errs, field.Invalid(at, entry.CIDR, "overlaps with the service network "+service.String()))
	}
	return errs
}

func validateHostSubnet(_ context.Context, subnet, old *networkv1.HostSubnet) (errs field.ErrorList) {
	errs = append(errs, same(subnet.Host, subnet.Name, field.NewPath("host"))...)
	_, choose := subnet.Annotations[networkv1.AssignHostSubnetAnnotation]
	if subnet.Subnet != "" || !choose {
		_, prefixErrs := prefix(subnet.Subnet, field.NewPath("subnet"))
		errs = append(errs, prefixErrs...)
	}
	if text, fixed := subnet.Annotations[networkv1.FixedVNIDHostAnnotation]; fixed {
		if _, err := strconv.ParseUint(text, 10, 24); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(networkv1.FixedVNIDHostAnnotation), text,
				"must be a network ID between 0 and 16777215"))
		}
	}
	errs = append(errs, address(subnet.HostIP, field.NewPath("hostIP"))...)
	for i, ip := range subnet.EgressIPs {
		errs = append(errs, address(string(ip), field.NewPath("egressIPs").Index(i))...)
	}
	for i, cidr := range subnet.EgressCIDRs {
		_, prefixErrs := prefix(string(cidr), field.NewPath("egressCIDRs").Index(i))
		errs = append(errs, prefixErrs...)
	}
	if old != nil && old.Subnet != "" && subnet.Subnet != old.Subnet {
		errs = append(errs, field.Invalid(field.NewPath("subnet"), subnet.Subnet, "cannot change the subnet lease midflight"))
	}
	return errs
}

func validateNetNamespace(namespace, old *networkv1.NetNamespace, pluginName string) (errs field.ErrorList) {
	errs = append(errs, same(namespace.NetName, namespace.Name, field.NewPath("netname"))...)
	if id := namespace.NetID; id > networkplugin.LastID || id > networkplugin.GlobalID && id < networkplugin.FirstID {
		errs = append(errs, field.Invalid(field.NewPath("netid"), id, "must be 0 (global) or between 10 and 16777215"))
	}
	if namespace.Name == metav1.NamespaceDefault && namespace.NetID != networkplugin.GlobalID {
		errs = append(errs, field.Invalid(field.NewPath("netid"), namespace.NetID, "the project default is always global: must be 0"))
	}
	for i, ip := range namespace.EgressIPs {
		errs = append(errs, address(string(ip), field.NewPath("egressIPs").Index(i))...)
	}
	// Accept a request that is already stored, so that the object can still be updated after the
	// network plugin has changed.
	text, requested := namespace.Annotations[networkv1.ChangePodNetworkAnnotation]
	if !requested || old != nil && old.Annotations[networkv1.ChangePodNetworkAnnotation] == text {
		return errs
	}
	at := field.NewPath("metadata", "annotations").Key(networkv1.ChangePodNetworkAnnotation)
	change, err := networkplugin.ParseChange(text)
	switch {
	case pluginName != networkplugin.Multitenant:
		errs = append(errs, field.Forbidden(at, "the network of a project can be changed only with the network plugin "+networkplugin.Multitenant))
	case err != nil:
		errs = append(errs, field.Invalid(at, text, err.Error()))
	case namespace.Name == metav1.NamespaceDefault && change.Action != networkplugin.Global:
		errs = append(errs, field.Forbidden(at, "the project default is always global"))
	}
	return errs
}

func validateEgressNetworkPolicy(_ context.Context, policy, _ *networkv1.EgressNetworkPolicy) (errs field.ErrorList) {
	if value, exists := policy.Annotations[networkplugin.ResolveAnnotation]; exists && value != networkplugin.ResolveAllowed {
		errs = append(errs, field.NotSupported(field.NewPath("metadata", "annotations").Key(networkplugin.ResolveAnnotation), value, []string{networkplugin.ResolveAllowed}))
	}
	at := field.NewPath("spec", "egress")
	if len(policy.Spec.Egress) > maxEgressRules {
		errs = append(errs, field.TooMany(at, len(policy.Spec.Egress), maxEgressRules))
	}
	for i, rule := range policy.Spec.Egress {
		in := at.Index(i)
		if rule.Type != networkv1.EgressNetworkPolicyRuleAllow && rule.Type != networkv1.EgressNetworkPolicyRuleDeny {
			errs = append(errs, field.NotSupported(in.Child("type"), rule.Type,
				[]networkv1.EgressNetworkPolicyRuleType{networkv1.EgressNetworkPolicyRuleAllow, networkv1.EgressNetworkPolicyRuleDeny}))
		}
		switch to := rule.To; {
		case to.CIDRSelector == "" && to.DNSName == "":
			errs = append(errs, field.Required(in.Child("to"), "must specify cidrSelector or dnsName"))
		case to.CIDRSelector != "" && to.DNSName != "":
			errs = append(errs, field.Invalid(in.Child("to"), to, "either specify cidrSelector or dnsName but not both"))
		case to.CIDRSelector != "":
			_, prefixErrs := prefix(to.CIDRSelector, in.Child("to", "cidrSelector"))
			errs = append(errs, prefixErrs...)
		case len(validation.IsDNS1123Subdomain(strings.TrimPrefix(to.DNSName, "*."))) > 0:
			errs = append(errs, field.Invalid(in.Child("to", "dnsName"), to.DNSName,
				"must be a DNS name such as www.example.com, or *.example.com for all names below a domain"))
		}
	}
	return errs
}

// prefix parses a network in CIDR notation. Its host bits must be zero.
func prefix(text string, at *field.Path) (netip.Prefix, field.ErrorList) {
	if text == "" {
		return netip.Prefix{}, field.ErrorList{field.Required(at, "set a network such as 10.128.0.0/14")}
	}
	parsed, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, field.ErrorList{field.Invalid(at, text, "must be a network such as 10.128.0.0/14")}
	case parsed.Masked() != parsed:
		return netip.Prefix{}, field.ErrorList{field.Invalid(at, text,
			"CIDR network specification is not in canonical form (should be "+parsed.Masked().String()+")")}
	}
	return parsed, nil
}

func address(text string, at *field.Path) field.ErrorList {
	if _, err := netip.ParseAddr(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be an IP address")}
	}
	return nil
}

func same(value, name string, at *field.Path) field.ErrorList {
	if value != name {
		return field.ErrorList{field.Invalid(at, value, "must be the same as metadata.name: "+name)}
	}
	return nil
}
