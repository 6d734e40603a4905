package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/network/status"
	"github.com/slipway-platform/slipway/node/hostreport"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func TestStatusReportsWhyNodeAcceptsNoPods(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse), condition(corev1.NodeDiskPressure, corev1.ConditionTrue),
			condition(corev1.NodeReady, corev1.ConditionTrue),
		}},
	}
	var out bytes.Buffer
	if err := printStatus(&out, hostStatus{Nodes: []nodeStatus{{Name: "one", Ready: true, Refuses: refusals(node)}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one accepts no more pods: its disk is nearly full", "oc adm uncordon one"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "memory") {
		t.Errorf("the status reports a missing condition:\n%s", &out)
	}
}

// printStatus prints a status as text.
func printStatus(out io.Writer, status hostStatus) error {
	return printAs(out, "", status, func(out io.Writer) error { return writeStatus(out, status) })
}

func TestStatusListsOnlyComponentsThatAreNotReady(t *testing.T) {
	process := supervisor.ProcessStatus{Name: "control-plane", State: component.Starting, PID: 7, Components: []supervisor.ComponentStatus{
		{Name: "etcd", State: component.Ready}, {Name: "apiserver", State: component.Starting}, {Name: "scheduler", State: component.Standby},
	}}
	var out bytes.Buffer
	if err := printStatus(&out, hostStatus{Status: supervisor.Status{Processes: []supervisor.ProcessStatus{process}}}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"1 ready, 1 standby, 1 starting": true, "  apiserver": true, "  scheduler": true, "etcd": false} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("status contains %q: %t, want %t\n%s", text, !want, want, &out)
		}
	}
}

func TestStatusEscapesControlCharacters(t *testing.T) {
	const text = "\x1b]52;c;cm0=\a\x1b[2J"
	node := corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: text}}}
	cluster := &clusterState{Hosts: []hostState{probeHost(t.Context(), &node, false, 0)}}
	var out bytes.Buffer
	for _, err := range []error{
		printStatus(&out, hostStatus{Nodes: []nodeStatus{{Name: "one", Address: text, Message: text}}}), printAs(&out, "", cluster, cluster.write),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "^[[2J") != 3 {
		t.Errorf("the status contains control characters of a node: %q", out.String())
	}
}

func TestClusterStatusShowsVersionAndComponentsOfHost(t *testing.T) {
	report, err := json.Marshal(hostreport.Report{Version: "v1.2.3", Components: []hostreport.Component{
		{Name: "kubelet", State: component.Ready}, {Name: "router", State: component.Starting, Note: "HAProxy does not start"}, {Name: "scheduler", State: component.Standby},
	}})
	if err != nil {
		t.Fatal(err)
	}
	state := hostState{Name: "second", Ready: true}
	state.addReport(string(report))
	cluster := &clusterState{Hosts: []hostState{state}}
	var out bytes.Buffer
	if err := printAs(&out, "", cluster, cluster.write); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"v1.2.3": true, "second: the component router has been starting since ": true, "HAProxy does not start": true, "kubelet": false, "scheduler": false} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("the status contains %q: %t, want %t\n%s", text, !want, want, &out)
		}
	}
	if cluster.healthy() {
		t.Error("a host with a component that is not ready is healthy")
	}
	if cluster.Hosts[0].NotReady = nil; !cluster.healthy() {
		t.Error("a host whose components are ready is not healthy")
	}
}

func TestStatusFollowsNoRedirectsOfNode(t *testing.T) {
	var reached atomic.Bool
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(private.Close)
	kubelet := httptest.NewTLSServer(http.RedirectHandler(private.URL, http.StatusFound))
	t.Cleanup(kubelet.Close)
	address := kubelet.Listener.Addr().(*net.TCPAddr)
	node := corev1.Node{Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(address.Port)}},
	}}
	if state := probeHost(t.Context(), &node, false, 0); state.CertificateEnd == nil || reached.Load() {
		t.Errorf("got %+v; reached the other server: %t", state, reached.Load())
	}
}

func TestNetworkStatusPrintsPeersAndProblems(t *testing.T) {
	state := networkState{
		Report: &status.Report{
			Plugin: "redhat/openshift-ovs-multitenant", Transport: "auto", VXLANDevice: "vxlan_sys_4789", VXLANPort: 4789,
			PodNetworks: []string{"10.128.0.0/23:9", "10.64.0.0/16:8"}, Subnet: "10.128.0.0/23", Projects: 3, NetworkIDs: 2,
			Restricted: policy.Restrictions{Ingress: 2}, EgressIPs: []status.EgressIP{{Address: "192.0.2.77", Projects: []string{"shop"}}},
			Peers: []status.Peer{
				{Name: "second", Address: "192.0.2.2", Subnet: "10.64.0.0/24", Path: "VXLAN"},
				{Name: "lost", Address: "192.0.2.3", Subnet: "10.64.1.0/24", Path: "direct, eth0", Problem: "does not respond"},
			},
		},
		Components: componentsOf(supervisor.Status{Processes: []supervisor.ProcessStatus{{Components: []supervisor.ComponentStatus{
			{Name: "network", State: component.Ready}, {Name: "network-policy", State: component.Ready, Note: "egress IP 192.0.2.78 cannot be used"}, {Name: "router", State: component.Failed},
		}}}}),
	}
	var out bytes.Buffer
	if err := printAs(&out, "", state, state.write); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Transport auto, device vxlan_sys_4789, UDP port 4789", "Pods 10.128.0.0/23:9, 10.64.0.0/16:8", "Projects 3, with 2 network IDs",
		"Restricted pods 2 ingress, 0 egress, 0 external", "Egress IP 192.0.2.77, of shop", "second 192.0.2.2 10.64.0.0/24 VXLAN true",
		"lost 192.0.2.3 10.64.1.0/24 direct, eth0 false", "host lost: does not respond", "network-policy: egress IP 192.0.2.78 cannot be used",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the status lacks %q:\n%s", want, &out)
		}
	}
	if state.healthy() {
		t.Error("a network with a lost host is healthy")
	}
	if state.Peers = state.Peers[:1]; !state.healthy() {
		t.Error("a network whose hosts respond is not healthy")
	}
	if state.Components[0].State = component.Starting; state.healthy() {
		t.Error("a network without its agent is healthy")
	}
}
