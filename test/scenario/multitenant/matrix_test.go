package multitenant

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
)

// matrix contains all pairs of senders and destinations. They are the pods of three projects on
// three hosts, the hosts themselves, and a machine outside the cluster.
type matrix struct {
	tenants
	projects []tenant
	hosts    map[string]actor
	senders  []*sockets
	flows    []probe
	ledger   *ledger
}

// protocols returns the protocols of the probes.
func protocols() []corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, icmp}
}

// namedPorts returns the ports in the pods' manifest.
func namedPorts() []corev1.ContainerPort {
	return []corev1.ContainerPort{
		{Name: "web", ContainerPort: webPort, Protocol: corev1.ProtocolTCP},
		{Name: "web-udp", ContainerPort: webPort, Protocol: corev1.ProtocolUDP},
		{Name: "web-sctp", ContainerPort: webPort, Protocol: corev1.ProtocolSCTP},
	}
}

// probedService is a service for a pod, with node ports for all protocols.
const probedService = `
apiVersion: v1
kind: Service
metadata: {name: probed-%[1]s}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  selector: {app: %[1]s}
  ports:
  - {name: tcp, port: 70, targetPort: %[2]d, protocol: TCP}
  - {name: udp, port: 70, targetPort: %[2]d, protocol: UDP}
  - {name: sctp, port: 70, targetPort: %[2]d, protocol: SCTP}
---
`

// newMatrix creates the third project and the services, and starts the servers.
func newMatrix(t *testing.T) *matrix {
	t.Helper()
	s := sharedTenants(t)
	green := tenant{s.Cluster.In(s.Namespace + "-green"), map[string]string{}}
	s.createProject(t, green.Namespace)
	s.createPods(t, green)
	m := &matrix{tenants: s, projects: []tenant{s.blue, s.red, green}, ledger: &ledger{}}
	for _, project := range m.projects {
		var manifest strings.Builder
		for _, pod := range pods() {
			fmt.Fprintf(&manifest, probedService, pod, webPort)
		}
		project.Apply(manifest.String())
	}
	m.createSockets()
	m.createFlows(t)
	for _, sender := range m.senders {
		if err := sender.open(t); err != nil {
			t.Fatalf("listen at %s: %v", sender.host, err)
		}
	}
	return m
}

// createSockets creates the actors with their addresses and sockets.
func (m *matrix) createSockets() {
	m.hosts = map[string]actor{}
	add := func(a actor, run func(func() error) error) {
		m.senders = append(m.senders, &sockets{actor: a, run: run, ledger: m.ledger})
	}
	for name, host := range map[string]*kit.Host{m.NodeName(): m.Cluster, second: m.second, distant: m.distant} {
		a := actor{host: name, addresses: [2][]netip.Addr{{host.Address}, {host.Second}}}
		// A host's address in the pod network is the first address of its subnet.
		for _, text := range strings.Fields(m.OC("get", "node", name, "-o", "jsonpath={.spec.podCIDRs[*]}")) {
			address := netip.MustParsePrefix(text).Addr()
			family := familyOf(address)
			a.addresses[family] = append(a.addresses[family], address.Next())
		}
		m.hosts[name] = a
		add(a, host.Do)
	}
	m.hosts[outsideHost] = actor{host: outsideHost, addresses: [2][]netip.Addr{{m.Gateway, m.distant.Gateway}, {m.SecondGateway, m.distant.SecondGateway}}}
	add(m.hosts[outsideHost], func(f func() error) error { return f() })
	for _, project := range m.projects {
		for _, pod := range pods() {
			object := project.Pod(pod)
			a := actor{project: project.Namespace, labels: object.Labels, ports: namedPorts(), host: object.Spec.NodeName}
			for _, ip := range object.Status.PodIPs {
				address := netip.MustParseAddr(ip.IP)
				a.addresses[familyOf(address)] = append(a.addresses[familyOf(address)], address)
			}
			add(a, func(f func() error) error { return project.inPod(pod, f) })
		}
	}
}

func familyOf(address netip.Addr) int {
	if address.Is4() {
		return 0
	}
	return 1
}

// createFlows creates the flows, one for each cell of the matrix.
func (m *matrix) createFlows(t *testing.T) {
	t.Helper()
	services := map[string]*corev1.Service{}
	for _, project := range m.projects {
		for _, pod := range pods() {
			object, err := m.Client.CoreV1().Services(project.Namespace).Get(t.Context(), "probed-"+pod, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			services[project.Namespace+project.Pod(pod).Spec.NodeName] = object
		}
	}
	for _, from := range m.senders {
		for _, to := range m.senders {
			if !from.isPod() && !to.isPod() {
				continue // packets between machines do not use the pod network
			}
			for family := range families {
				for _, protocol := range protocols() {
					m.addFlows(flow{from: from.actor, to: to.actor, family: family, protocol: protocol}, services[to.project+to.host])
				}
			}
		}
	}
}

// addFlows adds the flows from a sender to a receiver with each of the receiver's addresses.
func (m *matrix) addFlows(f flow, service *corev1.Service) {
	add := func(f flow, address netip.Addr, port int32) {
		m.flows = append(m.flows, probe{flow: f, address: netip.AddrPortFrom(address, uint16(port))})
	}
	ports := []int32{webPort, otherPort}
	if f.protocol == icmp {
		ports = []int32{0}
	}
	for _, port := range ports {
		f.port = port
		if f.from.host != outsideHost { // the machine outside the cluster has no routes to pods
			add(f, f.to.addresses[f.family][0], port)
		}
	}
	if f.protocol == icmp || !f.to.isPod() {
		return
	}
	f.port = webPort
	for _, port := range service.Spec.Ports {
		if port.Protocol != f.protocol {
			continue
		}
		if f.from.host != outsideHost {
			f.path = toService
			add(f, netip.MustParseAddr(service.Spec.ClusterIPs[f.family]), port.Port)
		}
		for name, host := range m.hosts {
			if name != outsideHost {
				f.path, f.entry = toNodePort, host
				add(f, host.addresses[f.family][0], port.NodePort)
			}
		}
	}
}

// roundTimeout is the maximum time to wait for the responses to all probes in a round.
const roundTimeout = 10 * time.Second

// round sends all probes at the same time. It returns when all probes that must arrive have been
// answered, or after a timeout.
func (m *matrix) round(ctx context.Context, w world) (probes []*probe, err error) {
	for _, f := range m.flows {
		probes = append(probes, &f)
	}
	m.ledger.mu.Lock()
	m.ledger.first += uint32(len(m.ledger.probes)) + 1
	m.ledger.probes = probes
	first := m.ledger.first
	m.ledger.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, roundTimeout)
	defer stop()
	var waiting sync.WaitGroup
	var sending errgroup.Group
	for _, sender := range m.senders {
		sending.Go(func() error {
			return sender.run(func() error {
				for i, p := range probes {
					if p.from.host == sender.host && p.from.project == sender.project {
						sender.send(ctx, p, first+uint32(i), &waiting)
					}
				}
				return nil
			})
		})
	}
	err = sending.Wait()
	for missing := true; missing && ctx.Err() == nil; {
		missing = false
		m.ledger.mu.Lock()
		for _, p := range probes {
			missing = missing || w.arrives(p.flow) && !p.answer
		}
		m.ledger.mu.Unlock()
		<-time.After(10 * time.Millisecond)
	}
	stop()
	waiting.Wait()
	return probes, err
}

// compare compares probes with the model. leaks contains the probes that arrived although the model
// drops them, and missing contains the unanswered probes that the model lets through.
func (m *matrix) compare(w world, probes []*probe) (leaks, missing []*probe) {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	for _, p := range probes {
		switch want := w.arrives(p.flow); {
		case !want && p.arrived:
			leaks = append(leaks, p)
		case want && !p.answer:
			missing = append(missing, p)
		}
	}
	return leaks, missing
}

func describe(probes []*probe) string {
	const most = 30
	var text strings.Builder
	for _, p := range probes[:min(len(probes), most)] {
		fmt.Fprintf(&text, "\n  %s", p)
	}
	return text.String()
}

// check waits until the network agrees with the model. After that, no probe that the model drops
// may arrive.
func (m *matrix) check(t *testing.T, state string, w world) {
	t.Helper()
	start := time.Now()
	agree := func(ctx context.Context) error {
		probes, err := m.round(ctx, w)
		if err != nil {
			return err
		}
		leaks, missing := m.compare(w, probes)
		if len(leaks)+len(missing) > 0 {
			return fmt.Errorf("of %d probes, %d arrive that must not:%s\n%d do not arrive that must:%s",
				len(probes), len(leaks), describe(leaks), len(missing), describe(missing))
		}
		return nil
	}
	m.WaitFor("network as in the model: "+state, agree)
	probes, err := m.round(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if leaks, _ := m.compare(w, probes); len(leaks) > 0 {
		t.Errorf("%s: %d of %d probes arrive that must not:%s", state, len(leaks), len(probes), describe(leaks))
	}
	passing := 0
	for _, p := range probes {
		if p.answer {
			passing++
		}
	}
	t.Logf("%s: %d probes, %d pass, %s", state, len(probes), passing, time.Since(start).Round(time.Millisecond))
}

// world returns the cluster's state according to the API.
func (m *matrix) world(t *testing.T, isolates bool) world {
	t.Helper()
	w := world{projects: map[string]labels.Set{}, hosts: m.hosts}
	if isolates {
		w.networks = map[string]string{}
	}
	names := []string{metav1.NamespaceDefault}
	for _, project := range m.projects {
		names = append(names, project.Namespace)
	}
	for _, name := range names {
		object, err := m.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.projects[name] = object.Labels
	}
	for _, project := range m.projects {
		if isolates {
			w.networks[project.Namespace] = project.netID()
		}
		list, err := m.Client.NetworkingV1().NetworkPolicies(project.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.policies = append(w.policies, list.Items...)
	}
	return w
}

// createPolicies creates policies that use every field of the API. They contain each selector alone
// and both combined, ports by number, by name and as a range, address blocks with exceptions, and
// both directions.
func (m *matrix) createPolicies(t *testing.T) {
	t.Helper()
	blue, red, green := m.projects[0], m.projects[1], m.projects[2]
	m.OC("label", "namespace", green.Namespace, "purpose=friend")
	app := func(names ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: names}}}
	}
	hosts := metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}}
	friends, far := metav1.LabelSelector{MatchLabels: map[string]string{"purpose": "friend"}}, app("far")
	port := func(protocol corev1.Protocol, number intstr.IntOrString, end ...int32) networkingv1.NetworkPolicyPort {
		p := networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number}
		if len(end) > 0 {
			p.EndPort = &end[0]
		}
		return p
	}
	block := func(address netip.Addr, bits int, except ...netip.Prefix) networkingv1.NetworkPolicyPeer {
		b := &networkingv1.IPBlock{CIDR: netip.PrefixFrom(address, bits).Masked().String()}
		for _, prefix := range except {
			b.Except = append(b.Except, prefix.Masked().String())
		}
		return networkingv1.NetworkPolicyPeer{IPBlock: b}
	}
	// machines contains the machines' addresses, and subnets contains the pod network except one
	// host's subnet.
	first, other := m.hosts[m.NodeName()], m.hosts[second]
	var machines, subnets []networkingv1.NetworkPolicyPeer
	for family, bits := range []int{32, 128} {
		for _, host := range []actor{first, m.hosts[distant], m.hosts[outsideHost]} {
			for _, address := range host.addresses[family] {
				machines = append(machines, block(address, bits))
			}
		}
		subnets = append(subnets, block(other.addresses[family][1], []int{14, 48}[family], netip.PrefixFrom(other.addresses[family][1], []int{23, 64}[family])))
	}
	for _, p := range []networkingv1.NetworkPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: red.Namespace, Name: "own-and-friends"}, Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}},
				{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &friends, PodSelector: &far}}, Ports: []networkingv1.NetworkPolicyPort{
					port(corev1.ProtocolTCP, intstr.FromString("web")), port(corev1.ProtocolUDP, intstr.FromString("web-udp")), port(corev1.ProtocolSCTP, intstr.FromInt32(webPort), otherPort),
				}},
			},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: red.Namespace, Name: "hosts"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: app("far", distant),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &hosts}}, Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, intstr.FromInt32(webPort))},
			}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: green.Namespace, Name: "machines"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: app("near", distant),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: machines},
				{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}, Ports: []networkingv1.NetworkPolicyPort{
					port(corev1.ProtocolTCP, intstr.FromInt32(webPort+1), otherPort+1), {Protocol: new(corev1.ProtocolUDP)},
				}},
			},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: blue.Namespace, Name: "friends-only"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: app("near"),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &friends, PodSelector: &far}}},
				{To: machines, Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolUDP, intstr.FromInt32(webPort))}},
			},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: blue.Namespace, Name: "closed"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: app("far"),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: blue.Namespace, Name: "some-subnets"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: app(distant),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: subnets}},
		}},
	} {
		if _, err := m.Client.NetworkingV1().NetworkPolicies(p.Namespace).Create(t.Context(), &p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNetworkAgreesWithItsModel compares all cells of the matrix with the model, in several states
// of projects and policies, and in two network modes.
func TestNetworkAgreesWithItsModel(t *testing.T) {
	m := newMatrix(t)
	red, green := m.projects[1], m.projects[2]
	m.check(t, "three isolated projects", m.world(t, true))
	m.podNetwork("join-projects", "--to="+red.Namespace, green.Namespace)
	m.check(t, "two joined projects", m.world(t, true))
	m.podNetwork("make-projects-global", green.Namespace)
	m.check(t, "a global project", m.world(t, true))
	m.createPolicies(t)
	m.check(t, "a global project, with policies", m.world(t, true))
	m.setPlugin(t, networkplugin.Multitenant, networkplugin.NetworkPolicy)
	t.Cleanup(func() { m.setPlugin(t, networkplugin.NetworkPolicy, networkplugin.Multitenant) })
	m.check(t, "policies", m.world(t, false))
}
