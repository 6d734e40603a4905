package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestProblemsFailDiagnostics(t *testing.T) {
	healthy := check{"Healthy", "Check", func(context.Context, *environment) ([]problem, error) { return nil, nil }, ""}
	broken := check{"Broken", "Check", func(context.Context, *environment) ([]problem, error) {
		return []problem{{"route-unserved", "b is broken"}, {"route-unserved", "a is broken"}}, nil
	}, ""}
	unread := check{"Unread", "Check", func(context.Context, *environment) ([]problem, error) { return nil, errors.New("forbidden") }, ""}
	skipped := check{"Skipped", "Check", nil, "slipway status reports it"}
	for name, tt := range map[string]struct {
		checks []check
		want   string
		fails  bool
	}{
		"healthy":           {[]check{healthy}, "Errors seen: 0", false},
		"one has no effect": {[]check{healthy, skipped}, "Skipping diagnostic: Skipped", false},
		"none has effect":   {[]check{skipped}, "Because: slipway status reports it", true},
		"problems":          {[]check{healthy, broken}, "route-unserved: a is broken; `oc describe route` shows the reason\n\nERROR: [from diagnostic Broken]\n       route-unserved: b is broken", true},
		"unreadable":        {[]check{unread}, "ERROR: [from diagnostic Unread]\n       unchecked: forbidden; check the connection", true},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		if err := run(t.Context(), streams, nil, tt.checks); (err != nil) != tt.fails || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v\n%s\nwant %q", name, err, out, tt.want)
		}
	}
}

func TestNodesThatAreNotReadyAreProblems(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, unschedulable bool) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: unschedulable},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	for want, client := range map[string]*fake.Clientset{
		"":                         fake.NewClientset(node("a", corev1.ConditionTrue, false)),
		`node "b" is not ready`:    fake.NewClientset(node("a", corev1.ConditionTrue, false), node("b", corev1.ConditionFalse, false)),
		"no node can run new pods": fake.NewClientset(node("a", corev1.ConditionTrue, true)),
	} {
		problems, err := nodeDefinitions(t.Context(), &environment{kubernetes: client})
		if text := fmt.Sprint(problems); err != nil || (want == "") != (len(problems) == 0) || !strings.Contains(text, want) {
			t.Errorf("problems %q, %v, want %q", text, err, want)
		}
	}
}

func TestExternalAddressesOutsideNetworksAreProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master-config.yaml")
	if err := os.WriteFile(file, []byte(`networkConfig: {externalIPNetworkCIDRs: ["192.0.2.0/24", "!192.0.2.128/25"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]int{"192.0.2.1": 0, "192.0.2.200": 1, "198.51.100.1": 1} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ExternalIPs: []string{address}}}
		problems, err := externalIPs(t.Context(), &environment{kubernetes: fake.NewClientset(service), masterConfig: file})
		if err != nil || len(problems) != want {
			t.Errorf("%s: %v, %v", address, problems, err)
		}
	}
}

func TestExpiredCertificatesAreProblems(t *testing.T) {
	authority := certtest.New(t)
	content := func(pair certtest.Pair) string {
		text, err := os.ReadFile(pair.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for text, want := range map[string]string{
		"": "", "text": "is not in PEM",
		content(authority.Issue(t, "www", "www.example.com")): "",
		content(authority.IssueExpired(t, "www.example.com")): "expired at",
	} {
		if got := certificateProblem(text, time.Now()); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("problem %q, want %q", got, want)
		}
	}
}

func TestNodesWithoutUsageAreProblems(t *testing.T) {
	nodes := metricsv1beta1.SchemeGroupVersion.WithResource("nodes")
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	env := &environment{
		kubernetes: fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: ready},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: ready},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stopped"}},
		),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{nodes: "NodeMetricsList"}),
	}
	usage := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": map[string]any{"name": "a"},
	}}
	if _, err := env.dynamic.Resource(nodes).Create(t.Context(), usage, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []problem{{"usage-missing", `the metrics API has no usage of node "b"`}}
	if got, err := nodeUsage(t.Context(), env); err != nil || !slices.Equal(got, want) {
		t.Errorf("problems %v, %v, want %v", got, err, want)
	}
}

// TestProblemsHaveRemedies checks that there is a remedy for each problem ID in the source code.
func TestProblemsHaveRemedies(t *testing.T) {
	ids := map[string]bool{}
	for _, file := range []string{"checks.go", "network.go", "networkpods.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`problem\{+"([a-z-]+)"|id: "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			ids[match[1]+match[2]] = true
		}
	}
	ids[unchecked] = true
	if got, want := slices.Sorted(maps.Keys(remedies)), slices.Sorted(maps.Keys(ids)); !slices.Equal(got, want) {
		t.Errorf("remedies %q, IDs of problems %q", got, want)
	}
}
