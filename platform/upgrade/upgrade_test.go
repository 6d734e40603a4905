package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// healthy returns the state of a cluster that can be upgraded.
func healthy() State {
	now := time.Now()
	return State{
		Server: "v1.36.4", Program: "v1.37.2", Nodes: []corev1.Node{node("first", "v1.36.4", corev1.ConditionTrue)},
		Members: map[string]string{"first": ""}, Now: now, Snapshot: now.Add(-time.Hour),
		Budgets:    []policyv1.PodDisruptionBudget{{Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, DisruptionsAllowed: 1}}},
		Deprecated: []API{{"endpoints.v1", ""}, {"flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.38"}},
	}
}

func node(name, version string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: version},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func TestCheckReportsEachObstacle(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*State)
		want   string // severity, subject, text or remedy; "" means no problem
	}{
		"nothing":               {func(*State) {}, ""},
		"same version":          {func(s *State) { s.Server = "v1.37.0" }, ""},
		"skipped version":       {func(s *State) { s.Server = "v1.35.1" }, "error version Kubernetes 1.36 first"},
		"older program":         {func(s *State) { s.Server = "v1.38.0" }, "error version to go back, restore a snapshot"},
		"node is not ready":     {func(s *State) { s.Nodes = append(s.Nodes, node("second", "v1.36.4", corev1.ConditionUnknown)) }, "error node second it is not ready"},
		"kubelet is too old":    {func(s *State) { s.Nodes[0] = node("first", "v1.33.9", corev1.ConditionTrue) }, "error node first its kubelet has version 1.33.9"},
		"member is not healthy": {func(s *State) { s.Members["second"] = "no leader" }, "error etcd member second no leader"},
		"API disappears":        {func(s *State) { s.Deprecated[1].Removed = "1.37" }, "error API flowschemas.v1beta3.flowcontrol.apiserver.k8s.io clients use it"},
		"no snapshot":           {func(s *State) { s.Snapshot = time.Time{} }, "warning backup no etcd snapshot exists"},
		"old snapshot":          {func(s *State) { s.Snapshot = s.Now.Add(-25 * time.Hour) }, "warning backup 25h0m0s old"},
		"budget":                {func(s *State) { s.Budgets[0].Status.DisruptionsAllowed = 0 }, "warning budget / it permits no disruption"},
	} {
		s := healthy()
		tt.change(&s)
		problems, err := Check(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(problems) == 0 && tt.want == "" {
			continue
		}
		if len(problems) != 1 {
			t.Errorf("%s: got %+v", name, problems)
			continue
		}
		p := problems[0]
		text := strings.Join([]string{string(p.Severity), p.Subject, p.Text, p.Remedy}, " ")
		for _, word := range strings.Fields(tt.want) {
			if !strings.Contains(text, word) {
				t.Errorf("%s: got %q, want %q", name, text, tt.want)
			}
		}
	}
}

func TestErrorsComeFirst(t *testing.T) {
	s := healthy()
	s.Snapshot, s.Members["first"] = time.Time{}, "no leader"
	problems, err := Check(s)
	if err != nil || len(problems) != 2 || problems[0].Subject != "etcd member first" {
		t.Errorf("got %+v, %v", problems, err)
	}
}

func TestSkippedVersionErrorNamesUpgradePath(t *testing.T) {
	for data, want := range map[string]string{
		"v1.37.0": "", "v1.36.9": "", "v1.35.9": "first upgrade to a Slipway version that contains Kubernetes 1.36", "v1.38.0": "restore a snapshot or a backup", "x": "read Kubernetes version",
	} {
		err := CheckJump(data, "v1.37.2")
		if got := fmt.Sprint(err); (err == nil) != (want == "") || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", data, got, want)
		}
	}
}
