package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// PluginName is the admission plugin's name in the configuration.
const PluginName = "slipway.io/JoinedNode"

// claims is an admission plugin that checks the objects that kubelets on joined hosts write. The
// Kubernetes NodeRestriction plugin limits a kubelet to its own Node and pods, but allows it to
// write fields that other components trust. For example, other hosts send packets to the node's
// subnets and addresses, finalizers delay the removal of the host, and the node group determines
// the host's labels.
type claims struct {
	*admission.Handler
	Options
	client kubernetes.Interface
	nodes  corelisters.NodeLister
}

var (
	_ admission.ValidationInterface                = &claims{}
	_ initializer.WantsExternalKubeClientSet       = &claims{}
	_ initializer.WantsExternalKubeInformerFactory = &claims{}
)

func (o Options) admission() apiserver.Admission {
	return apiserver.Admission{Name: PluginName, New: func(io.Reader) (admission.Interface, error) { return newClaims(o), nil }}
}

func newClaims(o Options) *claims {
	return &claims{Handler: admission.NewHandler(admission.Create, admission.Update), Options: o}
}

// SetExternalKubeClientSet stores the client, which reads nodes that are not in the cache yet.
func (p *claims) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory stores the node lister.
func (p *claims) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	nodes := factory.Core().V1().Nodes()
	p.nodes = nodes.Lister()
	p.SetReadyFunc(nodes.Informer().HasSynced)
}

// ValidateInitialization returns an error if the client or the lister is not set.
func (p *claims) ValidateInitialization() error {
	if p.client == nil || p.nodes == nil {
		return fmt.Errorf("initialize admission plugin %s: no client", PluginName)
	}
	return nil
}

// Validate rejects requests in which a joined host's kubelet sets a field to a forbidden value, for
// example to another host's address.
func (p *claims) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	name, ok := strings.CutPrefix(a.GetUserInfo().GetName(), userOfNode)
	if !ok || name == p.OwnNode || !slices.Contains(a.GetUserInfo().GetGroups(), groupOfNodes) {
		return nil
	}
	var err error
	switch a.GetResource().GroupResource() {
	case corev1.Resource("nodes"):
		err = p.checkNode(a)
	case corev1.Resource("pods"):
		err = p.checkPod(ctx, name, a)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// CockpitAnnotation is the Node annotation with the address of the host's Cockpit. The web console
// links to this address. Only administrators may set the annotation, because a host could otherwise
// make the console link to a page that the host controls.
const CockpitAnnotation = "slipway.openshift.io/cockpit"

// checkNode checks a host's Node. A new Node is compared with an empty Node.
func (p *claims) checkNode(a admission.Attributes) error {
	node, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetObject())
	}
	old, exists := a.GetOldObject().(*corev1.Node)
	if !exists {
		old = &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable}}
	}
	switch {
	case node.Spec.PodCIDR != old.Spec.PodCIDR || !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs):
		return errors.New("spec.podCIDRs: only the control plane assigns the subnet of a node")
	case node.Spec.Unschedulable != old.Spec.Unschedulable:
		return errors.New("spec.unschedulable: a node cannot change it; use `oc adm cordon` or `oc adm uncordon`")
	case !slices.Equal(node.Finalizers, old.Finalizers):
		return errors.New("metadata.finalizers: a node cannot change them")
	}
	for _, key := range []string{nodegroup.GroupAnnotation, nodegroup.DesiredAnnotation, nodegroup.LabelsAnnotation, CockpitAnnotation} {
		if node.Annotations[key] != old.Annotations[key] {
			return fmt.Errorf("metadata.annotations: a node cannot change %s", key)
		}
	}
	if key := foreignLabel(node.Labels, old.Labels); exists && key != "" {
		return fmt.Errorf("metadata.labels: a node that has registered cannot change %s; use `oc label node`", key)
	}
	for _, address := range node.Status.Addresses {
		if slices.Contains(old.Status.Addresses, address) {
			continue
		}
		if err := p.checkAddress(node.Name, address.Address); err != nil {
			return fmt.Errorf("status.addresses: %w", err)
		}
	}
	return nil
}

// foreignLabel returns the key of the first label that has changed and that the kubelet must not
// set, or "". The scheduler selects nodes by labels, so a host could otherwise attract another
// project's pods. The kubelet can change Kubernetes labels, because NodeRestriction checks them,
// and can add labels with a prefix, because it adds the CSI topology labels.
func foreignLabel(labels, old map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		previous, exists := old[key]
		prefix, _, _ := strings.Cut(key, "/")
		if changed := exists && labels[key] != previous || !exists && prefix == key; changed && !isKubernetes(prefix) {
			return key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		prefix, _, _ := strings.Cut(key, "/")
		if _, exists := labels[key]; !exists && !isKubernetes(prefix) {
			return key
		}
	}
	return ""
}

// isKubernetes reports whether NodeRestriction checks labels with the given prefix.
func isKubernetes(prefix string) bool {
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(domain string) bool {
		return prefix == domain || strings.HasSuffix(prefix, "."+domain)
	})
}

// checkAddress returns an error if the platform or another node already uses a name or address.
func (p *claims) checkAddress(node, text string) error {
	if slices.Contains(p.Reserved, text) {
		return fmt.Errorf("%s belongs to the control plane", text)
	}
	address, err := netip.ParseAddr(text)
	if err != nil && text != node {
		// Reject other names, because resolvers accept many spellings of a name, such as LOCALHOST,
		// 127.1, or a name with a final dot.
		return fmt.Errorf("a host cannot have the name %s: its only name is %s", text, node)
	}
	if err == nil {
		// Reject other spellings of an address, because other components compare addresses as
		// strings. Also reject a zone, which refers to a network interface on another machine.
		if canonical := address.Unmap().WithZone(""); canonical.String() != text {
			return fmt.Errorf("a host cannot have the address %s; write it as %s", text, canonical)
		}
		if !address.IsGlobalUnicast() || slices.Contains(p.Reserved, address.String()) ||
			contains(p.Networks, address) {
			return fmt.Errorf("a host cannot have the address %s: it is not a global unicast address, or it belongs to the cluster", text)
		}
	}
	others, err := p.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	belongs := func(a corev1.NodeAddress) bool {
		other, err := netip.ParseAddr(a.Address)
		return a.Address == text || err == nil && other.Unmap() == address
	}
	for _, other := range others {
		if other.Name != node && slices.ContainsFunc(other.Status.Addresses, belongs) {
			return fmt.Errorf("%s belongs to the node %s", text, other.Name)
		}
	}
	return nil
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

// checkPod checks the mirror pods that a kubelet creates for its static pods, and the addresses in
// the pod status. The checks are necessary because services, routes and network policies use pod
// labels and addresses.
func (p *claims) checkPod(ctx context.Context, node string, a admission.Attributes) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil // the request is for a subresource, such as an eviction
	}
	old, exists := a.GetOldObject().(*corev1.Pod)
	if !exists {
		if pod.Namespace != metav1.NamespaceSystem {
			return fmt.Errorf("metadata.namespace: the static pods of joined hosts can only be in namespace %s", metav1.NamespaceSystem)
		}
		// The scheduler applies the affinity of existing pods to new pods. A term whose topology
		// contains all nodes could prevent the placement of every pod in the cluster.
		if a := pod.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
			return errors.New("spec.affinity: the static pods of joined hosts cannot select other pods")
		}
		old = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}}
	}
	// Reject changes to the metadata, which a kubelet never makes, because users and controllers
	// rely on the metadata. For example, a finalizer would keep the pod, and its project, after the
	// host has been removed.
	if !slices.Equal(pod.Finalizers, old.Finalizers) || !maps.Equal(pod.Annotations, old.Annotations) {
		return errors.New("metadata: a node cannot change the finalizers and annotations of its pods")
	}
	if equality.Semantic.DeepEqual(podAddresses(old), podAddresses(pod)) {
		return nil
	}
	existing, err := p.nodes.Get(node)
	if err == nil && p.hasAddresses(existing, pod) {
		return nil
	}
	// Read the Node from the API server, because the cached Node might not contain the subnet of a
	// new node yet.
	existing, err = p.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !p.hasAddresses(existing, pod) {
		return fmt.Errorf("status.podIPs: %s are not addresses of node %s", strings.Join(podAddresses(pod), ", "), node)
	}
	return nil
}

func podAddresses(pod *corev1.Pod) (addresses []string) {
	if pod.Status.PodIP != "" {
		addresses = append(addresses, pod.Status.PodIP)
	}
	for _, ip := range pod.Status.PodIPs {
		addresses = append(addresses, ip.IP)
	}
	return addresses
}

// hasAddresses reports whether a pod on a node may have its addresses. The addresses must be in the
// node's subnet or in Pods. For pods in the host network, they must be the host's addresses.
func (p *claims) hasAddresses(node *corev1.Node, pod *corev1.Pod) bool {
	for _, text := range podAddresses(pod) {
		if pod.Spec.HostNetwork {
			if !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == text }) {
				return false
			}
			continue
		}
		address, err := netip.ParseAddr(text)
		if err != nil || !contains(p.Pods, address) && !slices.ContainsFunc(node.Spec.PodCIDRs, func(cidr string) bool {
			subnet, err := netip.ParsePrefix(cidr)
			return err == nil && (subnet.Contains(address) || p.DualStack.Subnet(subnet).Contains(address))
		}) {
			return false
		}
	}
	return true
}
