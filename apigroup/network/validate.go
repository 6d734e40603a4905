package network

import (
	"context"
	"net/netip"

	networkv1 "github.com/openshift/api/network/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxNetID is the largest virtual network identity, which has 24 bits. Of the smallest, 0 is global and
	// the others below firstNetID are reserved.
	maxNetID, firstNetID = 1<<24 - 1, 10
	// maxEgressRules is how many rules an egress firewall may have.
	maxEgressRules = 1000
	// assignSubnet is the annotation of a HostSubnet whose subnet the network is to choose.
	assignSubnet = "pod.network.openshift.io/assign-subnet"
)

func validateClusterNetwork(_ context.Context, network, old *networkv1.ClusterNetwork) (problems field.ErrorList) {
	service, wrong := prefix(network.ServiceNetwork, field.NewPath("serviceNetwork"))
	problems = append(problems, wrong...)
	entries := network.ClusterNetworks
	at := field.NewPath("clusterNetworks")
	if len(entries) == 0 && network.Network == "" {
		problems = append(problems, field.Required(at, "there must be at least one network for pods"))
	}
	if network.Network != "" {
		legacy := networkv1.ClusterNetworkEntry{CIDR: network.Network, HostSubnetLength: network.HostSubnetLength}
		problems = append(problems, validateEntry(legacy, service, field.NewPath("network"), field.NewPath("hostsubnetlength"))...)
		if len(entries) > 0 && entries[0] != legacy {
			problems = append(problems, field.Invalid(at.Index(0), entries[0], "must be what network and hostsubnetlength say"))
		}
	}
	var seen []netip.Prefix
	for i, entry := range entries {
		problems = append(problems, validateEntry(entry, service, at.Index(i).Child("CIDR"), at.Index(i).Child("hostSubnetLength"))...)
		cidr, err := netip.ParsePrefix(entry.CIDR)
		for _, other := range seen {
			if err == nil && other.Overlaps(cidr) {
				problems = append(problems, field.Invalid(at.Index(i).Child("CIDR"), entry.CIDR, "overlaps with "+other.String()))
			}
		}
		seen = append(seen, cidr)
	}
	if port := network.VXLANPort; port != nil && len(validation.IsValidPortNum(int(*port))) > 0 {
		problems = append(problems, field.Invalid(field.NewPath("vxlanPort"), *port, "must be between 1 and 65535"))
	}
	if mtu := network.MTU; mtu != nil && (*mtu < 576 || *mtu > 65536) {
		problems = append(problems, field.Invalid(field.NewPath("mtu"), *mtu, "must be between 576 and 65536"))
	}
	if old != nil && network.Name == networkv1.ClusterNetworkDefault && !apiequality.Semantic.DeepEqual(networks(network), networks(old)) {
		problems = append(problems, field.Forbidden(field.NewPath("metadata", "name"), "the default network cannot be changed"))
	}
	return problems
}

// networks is what may not change in the default network.
func networks(n *networkv1.ClusterNetwork) []any {
	return []any{n.Network, n.HostSubnetLength, n.ServiceNetwork, n.ClusterNetworks, n.PluginName}
}

func validateEntry(entry networkv1.ClusterNetworkEntry, service netip.Prefix, at, length *field.Path) field.ErrorList {
	cidr, problems := prefix(entry.CIDR, at)
	if len(problems) > 0 {
		return problems
	}
	switch bits := cidr.Addr().BitLen() - cidr.Bits(); {
	case entry.HostSubnetLength < 2:
		problems = append(problems, field.Invalid(length, entry.HostSubnetLength, "subnet length must be at least 2"))
	case entry.HostSubnetLength > uint32(bits):
		problems = append(problems, field.Invalid(length, entry.HostSubnetLength, "subnet length is too large for the network"))
	}
	if service.IsValid() && service.Overlaps(cidr) {
		problems = append(problems, field.Invalid(at, entry.CIDR, "overlaps with the service network "+service.String()))
	}
	return problems
}

func validateHostSubnet(_ context.Context, subnet, old *networkv1.HostSubnet) (problems field.ErrorList) {
	problems = append(problems, same(subnet.Host, subnet.Name, field.NewPath("host"))...)
	_, choose := subnet.Annotations[assignSubnet]
	if subnet.Subnet != "" || !choose {
		_, wrong := prefix(subnet.Subnet, field.NewPath("subnet"))
		problems = append(problems, wrong...)
	}
	problems = append(problems, address(subnet.HostIP, field.NewPath("hostIP"))...)
	for i, ip := range subnet.EgressIPs {
		problems = append(problems, address(string(ip), field.NewPath("egressIPs").Index(i))...)
	}
	for i, cidr := range subnet.EgressCIDRs {
		_, wrong := prefix(string(cidr), field.NewPath("egressCIDRs").Index(i))
		problems = append(problems, wrong...)
	}
	if old != nil && old.Subnet != "" && subnet.Subnet != old.Subnet {
		problems = append(problems, field.Invalid(field.NewPath("subnet"), subnet.Subnet, "cannot change the subnet lease midflight"))
	}
	return problems
}

func validateNetNamespace(_ context.Context, namespace, _ *networkv1.NetNamespace) (problems field.ErrorList) {
	problems = append(problems, same(namespace.NetName, namespace.Name, field.NewPath("netname"))...)
	if id := namespace.NetID; id > maxNetID || id > 0 && id < firstNetID {
		problems = append(problems, field.Invalid(field.NewPath("netid"), id, "must be 0 (global) or between 10 and 16777215"))
	}
	for i, ip := range namespace.EgressIPs {
		problems = append(problems, address(string(ip), field.NewPath("egressIPs").Index(i))...)
	}
	return problems
}

func validateEgressNetworkPolicy(_ context.Context, policy, _ *networkv1.EgressNetworkPolicy) (problems field.ErrorList) {
	at := field.NewPath("spec", "egress")
	if len(policy.Spec.Egress) > maxEgressRules {
		problems = append(problems, field.TooMany(at, len(policy.Spec.Egress), maxEgressRules))
	}
	for i, rule := range policy.Spec.Egress {
		in := at.Index(i)
		if rule.Type != networkv1.EgressNetworkPolicyRuleAllow && rule.Type != networkv1.EgressNetworkPolicyRuleDeny {
			problems = append(problems, field.NotSupported(in.Child("type"), rule.Type,
				[]networkv1.EgressNetworkPolicyRuleType{networkv1.EgressNetworkPolicyRuleAllow, networkv1.EgressNetworkPolicyRuleDeny}))
		}
		switch to := rule.To; {
		case to.CIDRSelector == "" && to.DNSName == "":
			problems = append(problems, field.Required(in.Child("to"), "must specify cidrSelector or dnsName"))
		case to.CIDRSelector != "" && to.DNSName != "":
			problems = append(problems, field.Invalid(in.Child("to"), to, "either specify cidrSelector or dnsName but not both"))
		case to.CIDRSelector != "":
			_, wrong := prefix(to.CIDRSelector, in.Child("to", "cidrSelector"))
			problems = append(problems, wrong...)
		case len(validation.IsDNS1123Subdomain(to.DNSName)) > 0:
			problems = append(problems, field.Invalid(in.Child("to", "dnsName"), to.DNSName, "must conform to DNS 952 subdomain conventions"))
		}
	}
	return problems
}

// prefix parses a network, whose host bits must be zero.
func prefix(text string, at *field.Path) (netip.Prefix, field.ErrorList) {
	if text == "" {
		return netip.Prefix{}, field.ErrorList{field.Required(at, "a network such as 10.128.0.0/14")}
	}
	parsed, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, field.ErrorList{field.Invalid(at, text, "must be a network such as 10.128.0.0/14")}
	case parsed.Masked() != parsed:
		return netip.Prefix{}, field.ErrorList{field.Invalid(at, text, "CIDR network specification is not in canonical form (should be "+parsed.Masked().String()+")")}
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
