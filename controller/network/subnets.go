package network

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	networktyped "github.com/openshift/client-go/network/clientset/versioned/typed/network/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/nodeaddress"
)

// hostSubnets allocates node subnets and maintains a HostSubnet for each node.
//
// A HostSubnet with the NodeUIDAnnotation annotation is for a Node and is deleted with that Node.
// An administrator creates other HostSubnets for hosts that are not nodes. Such a HostSubnet
// specifies its subnet, or requests one with the AssignHostSubnetAnnotation annotation.
type hostSubnets struct {
	kube   kubernetes.Interface
	client networktyped.HostSubnetInterface
	nodes  corelisters.NodeLister

	networks dualstack.Networks
	// rejected returns the reason why the cluster does not use these networks, or "".
	rejected func() string
}

// reconcile makes a HostSubnet match its node's subnet.
func (h *hostSubnets) reconcile(ctx context.Context, key controller.Key) error {
	subnet, err := h.client.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		subnet, err = nil, nil
	}
	if err != nil {
		return wrap(err, "get HostSubnet %q", key.Name)
	}
	node, err := h.nodes.Get(key.Name)
	switch {
	case apierrors.IsNotFound(err) && subnet == nil:
		return nil
	case apierrors.IsNotFound(err):
		return h.reconcileOther(ctx, subnet)
	case err != nil:
		return err
	}
	if node.Spec.PodCIDR == "" {
		if node, err = h.allocate(ctx, node.Name); err != nil {
			return err
		}
	}
	return h.describe(ctx, node, subnet)
}

// allocate assigns a subnet to a node that has no subnet. It returns the current Node.
func (h *hostSubnets) allocate(ctx context.Context, name string) (*corev1.Node, error) {
	if problem := h.rejected(); problem != "" {
		return nil, fmt.Errorf("allocate subnet for node %q: %s", name, problem)
	}
	// Read from the API server, because the cache might not contain a previous allocation yet.
	nodes, err := h.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var used []string
	for _, node := range nodes.Items {
		if node.Name == name && node.Spec.PodCIDR != "" {
			return &node, nil
		}
		used = append(used, append(node.Spec.PodCIDRs, node.Spec.PodCIDR)...)
	}
	others, err := h.others(ctx)
	if err != nil {
		return nil, err
	}
	cidr, err := free(h.networks.IPv4, append(used, others...))
	if err != nil {
		return nil, fmt.Errorf("allocate subnet for node %q: %w", name, err)
	}
	cidrs := []string{cidr.String()}
	if second := h.networks.Subnet(cidr); second.IsValid() {
		cidrs = append(cidrs, second.String())
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"podCIDR": cidr.String(), "podCIDRs": cidrs}})
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	node, err := h.kube.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return node, wrap(err, "set subnet of node %q to %s", name, cidr)
}

// others returns the subnets of hosts that are not nodes.
func (h *hostSubnets) others(ctx context.Context) (cidrs []string, err error) {
	subnets, err := h.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list HostSubnets: %w", err)
	}
	for _, subnet := range subnets.Items {
		if !belongsToNode(&subnet) {
			cidrs = append(cidrs, subnet.Subnet)
		}
	}
	return cidrs, nil
}

// describe creates or updates a node's HostSubnet.
func (h *hostSubnets) describe(ctx context.Context, node *corev1.Node, existing *networkv1.HostSubnet) error {
	address := addressOf(node)
	if address == "" {
		return nil // the kubelet reports the address later
	}
	desired := &networkv1.HostSubnet{Host: node.Name, HostIP: address, Subnet: node.Spec.PodCIDR}
	desired.Name, desired.Annotations = node.Name, map[string]string{networkv1.NodeUIDAnnotation: string(node.UID)}
	second := nodeaddress.Internal(node, netip.Addr.Is6)
	if second.IsValid() {
		desired.Annotations[dualstack.HostAnnotation] = second.String()
	}
	if existing != nil && existing.Subnet != desired.Subnet {
		// Recreate the HostSubnet, because its subnet is immutable.
		if err := h.remove(ctx, existing); err != nil {
			return err
		}
		desired.EgressIPs, desired.EgressCIDRs = existing.EgressIPs, existing.EgressCIDRs
		existing = nil
	}
	if existing == nil {
		_, err := h.client.Create(ctx, desired, metav1.CreateOptions{})
		return wrap(err, "create HostSubnet %q", node.Name)
	}
	changed := existing.DeepCopy()
	changed.HostIP = address
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, networkv1.NodeUIDAnnotation, string(node.UID))
	if second.IsValid() { // otherwise, the kubelet might report the address later
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, dualstack.HostAnnotation, second.String())
	}
	if equality.Semantic.DeepEqual(existing, changed) {
		return nil
	}
	_, err := h.client.Update(ctx, changed, metav1.UpdateOptions{})
	return wrap(err, "update HostSubnet %q", node.Name)
}

// reconcileOther deletes the HostSubnet of a deleted node, or assigns a subnet to a host that is
// not a node.
func (h *hostSubnets) reconcileOther(ctx context.Context, subnet *networkv1.HostSubnet) error {
	if belongsToNode(subnet) {
		return h.remove(ctx, subnet)
	}
	if _, requested := subnet.Annotations[networkv1.AssignHostSubnetAnnotation]; !requested || subnet.Subnet != "" {
		return nil
	}
	nodes, err := h.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	used, err := h.others(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		used = append(used, append(node.Spec.PodCIDRs, node.Spec.PodCIDR)...)
	}
	cidr, err := free(h.networks.IPv4, used)
	if err != nil {
		return fmt.Errorf("allocate subnet for host %q: %w", subnet.Name, err)
	}
	changed := subnet.DeepCopy()
	changed.Subnet = cidr.String()
	delete(changed.Annotations, networkv1.AssignHostSubnetAnnotation)
	_, err = h.client.Update(ctx, changed, metav1.UpdateOptions{})
	return wrap(err, "update HostSubnet %q", subnet.Name)
}

// remove deletes a HostSubnet unless another HostSubnet has replaced it.
func (h *hostSubnets) remove(ctx context.Context, subnet *networkv1.HostSubnet) error {
	err := h.client.Delete(ctx, subnet.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(subnet.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap(err, "delete HostSubnet %q", subnet.Name)
}

func belongsToNode(subnet *networkv1.HostSubnet) bool {
	return subnet.Annotations[networkv1.NodeUIDAnnotation] != ""
}

// addressOf returns a node's IPv4 address, or "" if the kubelet has not reported one.
func addressOf(node *corev1.Node) string {
	if address := nodeaddress.Internal(node, netip.Addr.Is4); address.IsValid() {
		return address.String()
	}
	return ""
}

// free returns the first subnet that does not overlap any of the given subnets. It returns a subnet
// of a network only if all subnets of the preceding networks are in use, as in OpenShift 3. It
// ignores invalid subnets.
func free(networks []dualstack.Network, used []string) (netip.Prefix, error) {
	taken := map[netip.Prefix]bool{}
	for _, text := range used {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			taken[prefix.Masked()] = true
		}
	}
	var full []string
	for _, network := range networks {
		var irregular []netip.Prefix // subnets of other sizes
		for prefix := range taken {
			if prefix.Overlaps(network.Prefix) && prefix.Bits() != 32-network.HostBits {
				irregular = append(irregular, prefix)
			}
		}
		for candidate := range subnets(network) {
			if !taken[candidate] && !slices.ContainsFunc(irregular, candidate.Overlaps) {
				return candidate, nil
			}
		}
		full = append(full, fmt.Sprintf("%s with %d host bits", network, network.HostBits))
	}
	return netip.Prefix{}, fmt.Errorf("all subnets of %s are in use; remove nodes, or add a network to networkConfig.clusterNetworks in master-config.yaml",
		strings.Join(full, " and of "))
}

// subnets returns all subnets of a network in the same order as OpenShift 3.
//
// If the subnet number spans two octets of the address, subnets whose bits in the lower octet are
// zero come first: 10.1.0.0/26, 10.1.1.0/26 to 10.1.255.0/26, and then 10.1.0.64/26. Therefore, for
// as long as possible, an octet identifies the pods on one host.
func subnets(network dualstack.Network) iter.Seq[netip.Prefix] {
	hostBits := network.HostBits
	subnetBits := 32 - network.Bits() - hostBits
	base := binary.BigEndian.Uint32(network.Masked().Addr().AsSlice())
	// lowBits is the number of subnet bits in the lower octet.
	lowBits := 8 - hostBits%8
	if hostBits%8 == 0 || (hostBits-1)/8 == (hostBits+subnetBits-1)/8 {
		lowBits = 0
	}
	return func(yield func(netip.Prefix) bool) {
		for number := range uint32(1) << subnetBits {
			high, low := number&(1<<(subnetBits-lowBits)-1), number>>(subnetBits-lowBits)
			address := [4]byte{}
			binary.BigEndian.PutUint32(address[:], base|(high<<lowBits|low)<<hostBits)
			if !yield(netip.PrefixFrom(netip.AddrFrom4(address), 32-hostBits)) {
				return
			}
		}
	}
}
