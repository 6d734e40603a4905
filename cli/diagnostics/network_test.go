package diagnostics

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestScriptReportsEachConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := listener.Addr().String()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var probes []probe
	arguments := []string{"sh", "-c", script, "sh"}
	for number := range 45 { // more than twice the 20 connections that the script opens at a time
		p := probe{id: "pod-to-pod", address: open, refused: number == 2}
		if number == 1 || number == 44 {
			p.address = closed.Addr().String()
		}
		probes, arguments = append(probes, p), append(arguments, p.address)
	}
	output, err := exec.Command("busybox", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := results(strings.NewReader(string(output)), probes)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range wrong {
		if strings.Contains(r.message, "refused") {
			refused++
		}
	}
	if len(wrong) != 3 || refused != 2 {
		t.Errorf("wrong results: %v", wrong)
	}
}

func TestIncompleteResultsAreErrors(t *testing.T) {
	for name, output := range map[string]string{"none": "", "no number": "sh: not found\n", "unknown number": "0\n7 error\n"} {
		if wrong, err := results(strings.NewReader(output), make([]probe, 2)); err == nil {
			t.Errorf("%s: %v", name, wrong)
		}
	}
}

func TestProblemsNameNodesAndRemedies(t *testing.T) {
	a, b := &testPod{project: "p", node: "a"}, &testPod{project: "p", node: "a"}
	timeout := "nc: timed out"
	var got []string
	for _, problem := range summarize([]result{
		{probe{id: "pod-to-pod", from: a, to: "a pod on node b"}, timeout},
		{probe{id: "pod-to-pod", from: b, to: "a pod on node b"}, timeout},
		{probe{id: "isolation", from: a, to: "a pod of another project on node b", refused: true}, ""},
		{probe{id: "isolation", from: a, to: "a pod of another project on node c"}, timeout},
	}) {
		got = append(got, problem.String())
	}
	want := []string{
		"isolation: pods on node a can reach a pod of another project on node b, although they must be isolated from it; " + remedies["isolation"],
		"isolation: pods on node a cannot reach a pod of another project on node c (nc: timed out), although no rule isolates them; " + remedies["isolation"],
		"pod-to-pod: pods on node a cannot reach a pod on node b (nc: timed out); " + remedies["pod-to-pod"],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestConnectionsCoverNodesServicesAndProjects(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	n := &testNetwork{environment: &environment{external: "198.51.100.1:443"}, nodes: []corev1.Node{node}, projects: []string{"one", "two"}, pods: []*testPod{
		{project: "one", name: "pod-0", node: "a"}, {project: "one", name: "pod-1", node: "a"}, {project: "two", name: "pod-2", node: "a"},
	}}
	count := map[string]int{}
	for _, probes := range [][]probe{n.inside(), n.outside(), n.across(true)} {
		for _, p := range probes {
			count[p.id]++
		}
	}
	want := map[string]int{"pod-to-pod": 2, "pod-to-service": 5, "dns": 3, "pod-to-node": 3, "external": 3, "isolation": 4}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
	for id := range want {
		if remedies[id] == "" {
			t.Errorf("%s has no remedy", id)
		}
	}
}

func TestChecksWithoutModificationSkipTheNetwork(t *testing.T) {
	for _, item := range withoutModification(checks()) {
		if item.name == networkCheckName && (item.run != nil || item.elsewhere == "") {
			t.Errorf("%s runs", item.name)
		}
		if item.name == "ClusterRoles" && item.run == nil {
			t.Errorf("%s does not run", item.name)
		}
	}
}
