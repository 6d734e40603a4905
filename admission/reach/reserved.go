package reach

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	netutils "k8s.io/utils/net"
)

// reserved identifies platform addresses. Both plugins share one instance.
type reserved struct {
	networks []network
	nodes    cache.SharedIndexInformer // nil until the API server passes its informers
}

func newReserved(platform []network) *reserved {
	r := &reserved{networks: everyHost()}
	for _, n := range platform {
		r.networks = append(r.networks, network{unmapped(n.prefix), n.name})
	}
	return r
}

// everyHost returns the networks that have a special meaning on every host or in every cloud.
func everyHost() []network {
	var networks []network
	for prefix, name := range map[string]string{
		"0.0.0.0/8": "the unspecified network", "::/128": "the unspecified network",
		"127.0.0.0/8": "the loopback network", "::1/128": "the loopback network",
		"169.254.0.0/16": "the link-local network", "fe80::/10": "the link-local network",
		"224.0.0.0/4": "a multicast network", "ff00::/8": "a multicast network",
		"255.255.255.255/32": "the broadcast network",
		// Cloud metadata services outside the link-local network.
		"fd00:ec2::254/128": "a network of cloud metadata services", "fd20:ce::254/128": "a network of cloud metadata services",
		"100.100.100.200/32": "a network of cloud metadata services",
		"168.63.129.16/32":   "a network of cloud metadata services", "192.0.0.192/32": "a network of cloud metadata services",
	} {
		networks = append(networks, network{netip.MustParsePrefix(prefix), name})
	}
	return networks
}

// byAddress is the name of the index that maps addresses to nodes.
const byAddress = "address"

// use stores the API server's node informer. Only the first call has an effect.
func (r *reserved) use(factory informers.SharedInformerFactory) error {
	if r.nodes != nil {
		return nil
	}
	nodes := factory.Core().V1().Nodes().Informer()
	if err := nodes.AddIndexers(cache.Indexers{byAddress: addressesOf}); err != nil {
		return fmt.Errorf("index nodes by address: %w", err)
	}
	r.nodes = nodes
	return nil
}

func addressesOf(object any) (texts []string, _ error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, nil
	}
	for _, nodeAddress := range node.Status.Addresses {
		if address, ok := parse(nodeAddress.Address); ok {
			texts = append(texts, address.String())
		}
	}
	return texts, nil
}

// owner returns a description of the network that contains an address, such as "the service
// network". It returns "" if the address is not a platform address.
func (r *reserved) owner(address netip.Addr) string {
	if i := slices.IndexFunc(r.networks, func(n network) bool { return n.prefix.Contains(address) }); i >= 0 {
		return r.networks[i].name
	}
	if r.nodes == nil {
		return ""
	}
	if nodes, err := r.nodes.GetIndexer().ByIndex(byAddress, address.String()); err == nil && len(nodes) > 0 {
		return "the network of the nodes"
	}
	return ""
}

// plugin is the common part of the ExternalIPRanger and RestrictedEndpointsAdmission plugins.
type plugin struct {
	*admission.Handler
	reserved *reserved
	err      error
}

func newPlugin(r *reserved) plugin {
	return plugin{Handler: admission.NewHandler(admission.Create, admission.Update), reserved: r}
}

// SetExternalKubeInformerFactory stores the node informer.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.err = p.reserved.use(factory); p.err == nil {
		p.SetReadyFunc(p.reserved.nodes.HasSynced)
	}
}

// ValidateInitialization returns an error if there is no informer.
func (p *plugin) ValidateInitialization() error {
	if p.err == nil && p.reserved.nodes == nil {
		return fmt.Errorf("check service addresses: no node informer")
	}
	return p.err
}

// ready waits until the node cache has synced, because the plugins would accept the addresses of
// nodes that are missing from the cache.
func (p *plugin) ready(a admission.Attributes) error {
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the node cache is not ready; try again"))
	}
	return nil
}

// parse parses an address in the same way as the service proxy, which accepts leading zeros. It
// converts an IPv4-mapped IPv6 address to an IPv4 address.
func parse(text string) (netip.Addr, bool) {
	address, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return address.Unmap(), ok
}

// unmapped converts a prefix of IPv4-mapped IPv6 addresses to an IPv4 prefix. It returns other
// prefixes unchanged.
func unmapped(prefix netip.Prefix) netip.Prefix {
	const prefixBits = 128 - 32
	if prefix.Addr().Is4In6() && prefix.Bits() >= prefixBits {
		return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-prefixBits)
	}
	return prefix
}
