// Package status reads the state of a host's network: the cluster's network settings, this host's
// network, and whether the other hosts respond.
package status

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	networkv1 "github.com/openshift/api/network/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/policy"
)

// Host describes this host. All fields are required.
type Host struct {
	// Node is the name of this host's Node.
	Node string
	// Client can list NetworkPolicies. Network can list all objects of the pod network.
	Client  kubernetes.Interface
	Network networkclient.Interface
	// Transport is the value of the podTransport setting.
	Transport string
	// VXLANDevice is the name of the VXLAN device.
	VXLANDevice string
	// PolicyTable is the name of the nftables table that enforces policies. Networks contains the
	// cluster's IPv4 networks.
	PolicyTable string
	Networks    policy.Networks
	// LeaseDir is the directory with the leases of the pods' addresses.
	LeaseDir string
}

// Report is the state of the network on a host.
type Report struct {
	Plugin    string `json:"plugin"`
	Transport string `json:"transport"`
	// VXLANDevice is the name of the VXLAN device, or "" if the host has none. VXLANPort is the UDP
	// port that the cluster uses for VXLAN.
	VXLANDevice string `json:"vxlanDevice,omitempty"`
	VXLANPort   uint32 `json:"vxlanPort,omitempty"`
	// PodNetworks lists the pod networks. The number of host bits of a host's subnet follows each
	// network, as in 10.128.0.0/14:9.
	PodNetworks    []string `json:"podNetworks"`
	ServiceNetwork string   `json:"serviceNetwork"`
	// Subnet is this host's subnet, and Pods is the number of pods that have an address in it.
	Subnet string `json:"subnet"`
	Pods   int    `json:"pods"`
	// Projects is the number of projects, and NetworkIDs is the number of distinct network IDs.
	Projects   int `json:"projects"`
	NetworkIDs int `json:"networkIDs"`
	// NetworkPolicies is the number of NetworkPolicies, and EgressFirewalls is the number of
	// EgressNetworkPolicies in the cluster. Restricted counts this host's pods that the rules in
	// the kernel restrict.
	NetworkPolicies int                 `json:"networkPolicies"`
	EgressFirewalls int                 `json:"egressFirewalls"`
	Restricted      policy.Restrictions `json:"restrictedPods"`
	// EgressIPs lists the egress addresses of this host.
	EgressIPs []EgressIP `json:"egressIPs,omitempty"`
	Peers     []Peer     `json:"peers,omitempty"`
}

// EgressIP is an egress address and the projects that use it.
type EgressIP struct {
	Address  string   `json:"address"`
	Projects []string `json:"projects,omitempty"`
}

// Peer is another host.
type Peer struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Subnet  string `json:"subnet"`
	// Path is the path of packets to the host's pods.
	Path string `json:"path"`
	// Problem is the reason why pods of the host are not reachable, or "".
	Problem string `json:"problem,omitempty"`
}

// Healthy reports whether all other hosts respond.
func (r *Report) Healthy() bool {
	return !slices.ContainsFunc(r.Peers, func(p Peer) bool { return p.Problem != "" })
}

// Read reads the state of the host's network.
func (h *Host) Read(ctx context.Context) (*Report, error) {
	r := &Report{Transport: h.Transport}
	if link, err := netlinksafe.LinkByName(h.VXLANDevice); err == nil {
		r.VXLANDevice = link.Attrs().Name
	}
	if err := errors.Join(h.addNetwork(ctx, r), h.addProjects(ctx, r), h.addPolicies(ctx, r)); err != nil {
		return nil, err
	}
	return r, nil
}

// addNetwork adds the network's settings, this host's subnet, and the other hosts.
func (h *Host) addNetwork(ctx context.Context, r *Report) error {
	network, err := h.Network.NetworkV1().ClusterNetworks().Get(ctx, networkv1.ClusterNetworkDefault, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get ClusterNetwork %q: %w", networkv1.ClusterNetworkDefault, err)
	}
	r.Plugin, r.ServiceNetwork = network.PluginName, network.ServiceNetwork
	for _, entry := range network.ClusterNetworks {
		r.PodNetworks = append(r.PodNetworks, fmt.Sprintf("%s:%d", entry.CIDR, entry.HostSubnetLength))
	}
	if network.VXLANPort != nil {
		r.VXLANPort = *network.VXLANPort
	}
	subnets, err := h.Network.NetworkV1().HostSubnets().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list HostSubnets: %w", err)
	}
	r.Peers = make([]Peer, 0, len(subnets.Items))
	var probes sync.WaitGroup
	for _, subnet := range subnets.Items {
		if subnet.Name == h.Node {
			r.Subnet = subnet.Subnet
			for _, address := range subnet.EgressIPs {
				r.EgressIPs = append(r.EgressIPs, EgressIP{Address: string(address)})
			}
			continue
		}
		r.Peers = append(r.Peers, Peer{Name: subnet.Name, Address: subnet.HostIP, Subnet: subnet.Subnet})
		peer, isNode := &r.Peers[len(r.Peers)-1], subnet.Annotations[networkv1.NodeUIDAnnotation] != ""
		probes.Go(func() { h.probe(ctx, peer, isNode) })
	}
	probes.Wait()
	slices.SortFunc(r.Peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	pods, err := cni.ListPods(h.LeaseDir)
	r.Pods = len(pods)
	return err
}

// addProjects adds the numbers of projects and network IDs, and the projects that use each egress
// address.
func (h *Host) addProjects(ctx context.Context, r *Report) error {
	projects, err := h.Network.NetworkV1().NetNamespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list NetNamespaces: %w", err)
	}
	ids := map[uint32]bool{}
	for _, project := range projects.Items {
		ids[project.NetID] = true
		for i := range r.EgressIPs {
			if slices.Contains(project.EgressIPs, networkv1.NetNamespaceEgressIP(r.EgressIPs[i].Address)) {
				r.EgressIPs[i].Projects = append(r.EgressIPs[i].Projects, project.Name)
			}
		}
	}
	r.Projects, r.NetworkIDs = len(projects.Items), len(ids)
	return nil
}

// addPolicies adds the policies and their effect on this host.
func (h *Host) addPolicies(ctx context.Context, r *Report) error {
	policies, err := h.Client.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list NetworkPolicies: %w", err)
	}
	firewalls, err := h.Network.NetworkV1().EgressNetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list EgressNetworkPolicies: %w", err)
	}
	r.NetworkPolicies, r.EgressFirewalls = len(policies.Items), len(firewalls.Items)
	r.Restricted, err = policy.Restricted(ctx, h.PolicyTable, h.Networks)
	return err
}

const (
	// probeTimeout is the timeout of a connection to another host.
	probeTimeout = 2 * time.Second
	// discard is a TCP port on which no host listens. A host that refuses the connection is
	// reachable.
	discard = "9"
)

// probe finds the path to the pods of another host. It connects to the host's address in its pod
// subnet. Only nodes have this address.
func (h *Host) probe(ctx context.Context, peer *Peer, isNode bool) {
	subnet, err := netip.ParsePrefix(peer.Subnet)
	if err != nil {
		peer.Path, peer.Problem = "none", "the host has no subnet"
		return
	}
	gateway := cni.Gateway(subnet)
	if peer.Path, err = h.path(gateway); err != nil {
		peer.Path, peer.Problem = "none", fmt.Sprintf("no route to its pods: %v", err)
		return
	}
	if !isNode {
		return
	}
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort(gateway.String(), discard))
	if err == nil {
		_ = conn.Close()
	}
	if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
		peer.Problem = fmt.Sprintf("%s does not respond over the pod network", gateway)
	}
}

// path returns the path of packets to an address.
func (h *Host) path(address netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(address.AsSlice())
	if err != nil {
		return "", err
	}
	if len(routes) == 0 || routes[0].Type != unix.RTN_UNICAST {
		return "", errors.New("the address is unreachable")
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", err
	}
	if link.Attrs().Name == h.VXLANDevice {
		return "VXLAN", nil
	}
	return "direct, " + link.Attrs().Name, nil
}
