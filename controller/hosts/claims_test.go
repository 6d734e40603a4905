package hosts

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/dualstack"
)

// joinedNode returns the Node of a joined host.
func joinedNode(name, subnet, address string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{finalizer}, Labels: map[string]string{
			"region": "primary", "example.com/zone": "open", "kubernetes.io/arch": "amd64",
		}},
		Spec: corev1.NodeSpec{PodCIDR: subnet, PodCIDRs: []string{subnet}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name},
		}},
	}
}

// newTestClaims returns the plugin for a cluster with the hosts "second" and "third".
func newTestClaims(t *testing.T) *claims {
	t.Helper()
	third := joinedNode("third", "10.132.0.0/23", "192.0.2.3")
	client := fake.NewClientset(joinedNode("second", "10.130.0.0/23", "192.0.2.2"), third)
	factory := informers.NewSharedInformerFactory(client, 0)
	p := newClaims(Options{
		Reserved: []string{"kubernetes", "192.0.2.1"}, OwnNode: "master",
		Networks: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")},
	})
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	if err := factory.Core().V1().Nodes().Informer().GetStore().Add(third); err != nil {
		t.Fatal(err)
	}
	return p
}

// validate sends a request from a node to the plugin.
func (p *claims) validate(t *testing.T, node, resource string, old, object runtime.Object) error {
	t.Helper()
	operation := admission.Update
	if old == nil {
		operation = admission.Create
	}
	return p.Validate(t.Context(), admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "", "",
		schema.GroupVersionResource{Resource: resource}, "", operation, nil, false,
		&user.DefaultInfo{Name: userOfNode + node, Groups: []string{groupOfNodes}}), nil)
}

func TestNodeCanClaimOnlyItsOwnFields(t *testing.T) {
	p := newTestClaims(t)
	address := func(text string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Addresses[0].Address = text }
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"nothing":                          {func(*corev1.Node) {}, ""},
		"another address":                  {address("192.0.2.9"), ""},
		"annotation, condition":            {func(n *corev1.Node) { n.Annotations = map[string]string{LeaveAnnotation: "true"} }, ""},
		"subnet":                           {func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.132.0.0/24", []string{"10.132.0.0/24"} }, "spec.podCIDRs"},
		"further subnet":                   {func(n *corev1.Node) { n.Spec.PodCIDRs = append(n.Spec.PodCIDRs, "fd00::/64") }, "spec.podCIDRs"},
		"no finalizer":                     {func(n *corev1.Node) { n.Finalizers = nil }, "metadata.finalizers"},
		"cordon":                           {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "spec.unschedulable"},
		"address of Cockpit":               {func(n *corev1.Node) { n.Annotations = map[string]string{CockpitAnnotation: "https://x"} }, CockpitAnnotation},
		"label of a CSI driver":            {func(n *corev1.Node) { n.Labels["csi.example.com/rack"] = "1" }, ""},
		"label of the kubelet":             {func(n *corev1.Node) { n.Labels["kubernetes.io/arch"] = "arm64" }, ""},
		"new label of a team":              {func(n *corev1.Node) { n.Labels["team"] = "a" }, "metadata.labels"},
		"empty label":                      {func(n *corev1.Node) { n.Labels["team"] = "" }, "metadata.labels"},
		"another value of a label":         {func(n *corev1.Node) { n.Labels["example.com/zone"] = "secure" }, "metadata.labels"},
		"no label":                         {func(n *corev1.Node) { delete(n.Labels, "region") }, "metadata.labels"},
		"address of another node":          {address("192.0.2.3"), "belongs to the node third"},
		"IPv6 address in another notation": {address("FD0A::2"), "write it as fd0a::2"},
		"address with a zone":              {address("fd0a::9%eth0"), "write it as fd0a::9"},
		"name of another node":             {address("third"), "its only name is second"},
		"its own name":                     {address("second"), ""},
		"another spelling of a name":       {address("LOCALHOST"), "its only name is second"},
		"a name that is an address":        {address("127.1"), "its only name is second"},
		"address of the control plane":     {address("192.0.2.1"), "belongs to the control plane"},
		"address in another notation":      {address("::ffff:192.0.2.1"), "cannot have"},
		"name of the control plane":        {address("kubernetes"), "belongs to the control plane"},
		"address of a pod":                 {address("10.128.0.5"), "cannot have"},
		"address of a service":             {address("172.30.0.1"), "cannot have"},
		"address of the host's loopback":   {address("127.0.0.2"), "cannot have"},
		"link-local address":               {address("169.254.169.254"), "cannot have"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := joinedNode("second", "10.130.0.0/23", "192.0.2.2")
			tt.change(changed)
			expectRefusal(t, p.validate(t, "second", "nodes", joinedNode("second", "10.130.0.0/23", "192.0.2.2"), changed), tt.want)
			if err := p.validate(t, "master", "nodes", joinedNode("master", "10.128.0.0/23", "192.0.2.1"), changed); err != nil {
				t.Errorf("the node of the master: %v", err)
			}
		})
	}
}

func TestNewNodeHasNoSubnet(t *testing.T) {
	p := newTestClaims(t)
	node := joinedNode("second", "", "192.0.2.2")
	node.Finalizers, node.Spec.PodCIDRs, node.Spec.Unschedulable = nil, nil, true
	expectRefusal(t, p.validate(t, "second", "nodes", nil, node), "")
	node.Labels = map[string]string{"team": "a"} // set by kubeletArguments.node-labels
	expectRefusal(t, p.validate(t, "second", "nodes", nil, node), "")
	node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.132.1.0/24", []string{"10.132.1.0/24"}
	expectRefusal(t, p.validate(t, "second", "nodes", nil, node), "spec.podCIDRs")
}

func TestPodsOfOtherNetworkPluginHaveAnyAddressOfIt(t *testing.T) {
	p := newTestClaims(t)
	p.Pods = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
	for address, want := range map[string]string{"10.131.7.2": "", "10.130.0.5": "", "192.0.2.3": "status.podIPs", "172.30.0.1": "status.podIPs"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod"}}
		changed := pod.DeepCopy()
		changed.Status = corev1.PodStatus{PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
		expectRefusal(t, p.validate(t, "second", "pods", pod, changed), want)
	}
}

func TestPodIPv6AddressMustBelongToNode(t *testing.T) {
	p := newTestClaims(t)
	networks := dualstack.Networks{
		IPv4: []dualstack.Network{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), HostBits: 9}},
		IPv6: dualstack.Network{Prefix: netip.MustParsePrefix("fd01::/48"), HostBits: 64},
	}
	subnet := networks.Subnet(netip.MustParsePrefix("10.130.0.0/23")).Addr().Next().Next().String()
	for _, tt := range []struct {
		networks      dualstack.Networks
		address, want string
	}{{networks, subnet, ""}, {networks, "fd01::2", "status.podIPs"}, {networks, "fe80::2", "status.podIPs"}, {dualstack.Networks{}, subnet, "status.podIPs"}} {
		p.DualStack = tt.networks
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod"}}
		changed := pod.DeepCopy()
		changed.Status = corev1.PodStatus{PodIP: "10.130.0.5", PodIPs: []corev1.PodIP{{IP: "10.130.0.5"}, {IP: tt.address}}}
		expectRefusal(t, p.validate(t, "second", "pods", pod, changed), tt.want)
	}
}

func TestPodAddressMustBelongToNode(t *testing.T) {
	p := newTestClaims(t)
	pod := func(namespace, address string, hostNetwork bool) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{HostNetwork: hostNetwork}}
		if address != "" {
			pod.Status = corev1.PodStatus{PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
		}
		return pod
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of its subnet":                         {pod("shop", "10.130.0.7", false), ""},
		"of the host":                           {pod("shop", "192.0.2.2", true), ""},
		"of another subnet":                     {pod("shop", "10.132.0.7", false), "not addresses of node second"},
		"of the host, pod without host network": {pod("shop", "192.0.2.2", false), "not addresses of node second"},
		"of another host":                       {pod("shop", "192.0.2.3", true), "not addresses of node second"},
		"of loopback":                           {pod("shop", "127.0.0.1", true), "not addresses of node second"},
		"not an address":                        {pod("shop", "localhost", false), "not addresses of node second"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, p.validate(t, "second", "pods", pod("shop", "", tt.pod.Spec.HostNetwork), tt.pod), tt.want)
		})
	}
	// If this request were rejected, the pod's status could not become Failed.
	expectRefusal(t, p.validate(t, "second", "pods", pod("shop", "10.132.0.7", false), pod("shop", "10.132.0.7", false)), "")
	expectRefusal(t, p.validate(t, "second", "pods", nil, pod("kube-system", "", true)), "")
	expectRefusal(t, p.validate(t, "second", "pods", nil, pod("shop", "", true)), "metadata.namespace")
	expectRefusal(t, p.validate(t, "master", "pods", nil, pod("shop", "", true)), "")
}

func TestNodeCannotChangeMetadataOfItsPods(t *testing.T) {
	p := newTestClaims(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "pod", Finalizers: []string{"example.com/own"}, Annotations: map[string]string{"openshift.io/scc": "restricted"},
	}}
	for name, change := range map[string]func(*corev1.Pod){
		"new finalizer":     func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, "example.com/forever") },
		"removed finalizer": func(pod *corev1.Pod) { pod.Finalizers = nil },
		"annotation":        func(pod *corev1.Pod) { pod.Annotations["openshift.io/scc"] = "privileged" },
	} {
		changed := pod.DeepCopy()
		change(changed)
		changed.Status.Phase = corev1.PodRunning
		if err := p.validate(t, "second", "pods", pod, changed); err == nil {
			t.Errorf("%s: no error", name)
		}
		expectRefusal(t, p.validate(t, "master", "pods", pod, changed), "")
	}
	changed := pod.DeepCopy()
	changed.Status.Phase = corev1.PodRunning
	expectRefusal(t, p.validate(t, "second", "pods", pod, changed), "")
	static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "pod", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "a"}}}
	expectRefusal(t, p.validate(t, "second", "pods", nil, static), "")
	static.Finalizers = []string{"example.com/forever"}
	expectRefusal(t, p.validate(t, "second", "pods", nil, static), "finalizers")
}

func TestStaticPodCannotKeepOtherPodsAway(t *testing.T) {
	p := newTestClaims(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "pod"}}
	for _, affinity := range []*corev1.Affinity{{PodAntiAffinity: &corev1.PodAntiAffinity{}}, {PodAffinity: &corev1.PodAffinity{}}} {
		pod.Spec.Affinity = affinity
		expectRefusal(t, p.validate(t, "second", "pods", nil, pod), "spec.affinity")
		expectRefusal(t, p.validate(t, "master", "pods", nil, pod), "")
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	expectRefusal(t, p.validate(t, "second", "pods", nil, pod), "")
}

func expectRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
