package descheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// node returns a ready node with 10 CPUs and capacity for 10 pods.
func node(name string, labels ...string) *corev1.Node {
	set := map[string]string{corev1.LabelHostname: name}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		set[key] = value
	}
	size := corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("10Gi"), "pods": resource.MustParse("10")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// pod returns a running pod that requests one CPU. Its owner is the "web" ReplicationController.
func pod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "web"}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "web:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// deschedule runs a policy once and returns its results.
func deschedule(t *testing.T, client *fake.Clientset, policy string, dry bool) (results []string) {
	t.Helper()
	parsed, err := parse([]byte("apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies: " + policy))
	if err != nil {
		t.Fatal(err)
	}
	d := Descheduler{Client: client, Policy: parsed, DryRun: dry, Report: func(e Eviction) { results = append(results, e.String()) }}
	if err := d.Deschedule(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(results)
	return results
}

func expectResults(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

const (
	duplicatesPolicy = "{RemoveDuplicates: {enabled: true}}"
	affinityPolicy   = "{RemovePodsViolatingNodeAffinity: {enabled: true, params: {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}}}"
)

func utilizationPolicy(numberOfNodes int) string {
	return fmt.Sprintf("{LowNodeUtilization: {enabled: true, params: {nodeResourceUtilizationThresholds: "+
		"{thresholds: {cpu: 20, pods: 20}, targetThresholds: {cpu: 50, pods: 50}, numberOfNodes: %d}}}}", numberOfNodes)
}

func TestDuplicatesAreEvictedFromNode(t *testing.T) {
	client := fake.NewClientset(node("a"), node("b"), pod("web-1", "a"), pod("web-2", "a"))
	results := deschedule(t, client, duplicatesPolicy, false)
	if len(results) != 1 || !strings.HasSuffix(results[0], "on node a: evicted by RemoveDuplicates") {
		t.Errorf("got %q", results)
	}
	// With one pod on each node, no pod is evicted.
	client = fake.NewClientset(node("a"), node("b"), pod("web-1", "a"), pod("web-2", "b"))
	expectResults(t, deschedule(t, client, duplicatesPolicy, false))
}

func TestProtectedPodsAreNotEvicted(t *testing.T) {
	critical := int32(2000000000)
	client := fake.NewClientset(node("a"), node("b"),
		pod("annotated", "a", func(p *corev1.Pod) { p.Annotations = map[string]string{criticalAnnotation: ""} }),
		pod("critical", "a", func(p *corev1.Pod) { p.Spec.Priority = &critical }),
		pod("standalone", "a", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		pod("daemon", "a", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }),
		pod("static", "a", func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": "1"} }),
		pod("local", "a", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}),
		pod("free", "a"))
	expectResults(t, deschedule(t, client, utilizationPolicy(0), false), "pod shop/free on node a: evicted by LowNodeUtilization")
}

func TestPodsAreEvictedFromFullNodes(t *testing.T) {
	objects := []runtime.Object{node("empty"), node("full")}
	for i := range 6 {
		objects = append(objects, pod(fmt.Sprint("web-", i), "full"))
	}
	// BestEffort pods are evicted first.
	objects = append(objects, pod("best-effort", "full", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources, p.Status.QOSClass = corev1.ResourceRequirements{}, corev1.PodQOSBestEffort
	}))
	results := deschedule(t, fake.NewClientset(objects...), utilizationPolicy(0), false)
	if len(results) != 2 || results[0] != "pod shop/best-effort on node full: evicted by LowNodeUtilization" {
		t.Errorf("got %q, want 2 evictions: 7 pods of 10 are 2 above the target", results)
	}
	// There must be more underutilized nodes than numberOfNodes.
	expectResults(t, deschedule(t, fake.NewClientset(objects...), utilizationPolicy(1), false))
	// A cordoned node receives no pods.
	objects[0].(*corev1.Node).Spec.Unschedulable = true
	expectResults(t, deschedule(t, fake.NewClientset(objects...), utilizationPolicy(0), false))
}

func TestPodsBelowTargetAreNotEvicted(t *testing.T) {
	objects := []runtime.Object{node("empty"), node("used")}
	for i := range 5 {
		objects = append(objects, pod(fmt.Sprint("web-", i), "used"))
	}
	expectResults(t, deschedule(t, fake.NewClientset(objects...), utilizationPolicy(0), false))
}

func TestPodsThatViolateNodeAffinityAreEvicted(t *testing.T) {
	zone := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			expressions := []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}}}}}
		}
	}
	client := fake.NewClientset(node("a", "zone=east"), node("b", "zone=west"), pod("west", "a", zone("west")), pod("east", "a", zone("east")), pod("north", "a", zone("north")))
	// No node satisfies the affinity of the third pod.
	expectResults(t, deschedule(t, client, affinityPolicy, false), "pod shop/west on node a: evicted by RemovePodsViolatingNodeAffinity")
}

func TestPodsThatViolateAntiAffinityAreEvicted(t *testing.T) {
	away := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pod-a"}}, TopologyKey: corev1.LabelHostname,
		}}}}
	}
	client := fake.NewClientset(node("a"), node("b"), pod("pod-a", "a"), pod("pod-b", "a", away), pod("pod-c", "a", away))
	// In the guide's example, pod-a is evicted. Like OpenShift 3.11's descheduler, this descheduler
	// instead evicts the pods that have the anti-affinity rule.
	expectResults(t, deschedule(t, client, "{RemovePodsViolatingInterPodAntiAffinity: {enabled: true}}", false),
		"pod shop/pod-b on node a: evicted by RemovePodsViolatingInterPodAntiAffinity",
		"pod shop/pod-c on node a: evicted by RemovePodsViolatingInterPodAntiAffinity")
}

func TestDisruptionBudgetPreventsEviction(t *testing.T) {
	client := fake.NewClientset(node("a"), node("b"), pod("web-1", "a"), pod("web-2", "a"))
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetSubresource() == "eviction", nil, apierrors.NewTooManyRequests("it would violate the budget", 0)
	})
	results := deschedule(t, client, duplicatesPolicy, false)
	if len(results) != 1 || !strings.Contains(results[0], "stays on node a") || !strings.Contains(results[0], "violate the budget") {
		t.Errorf("got %q", results)
	}
}

func TestDryRunEvictsNothing(t *testing.T) {
	client := fake.NewClientset(node("a"), node("b"), pod("web-1", "a"), pod("web-2", "a"))
	var dry []string
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		dry = append(dry, eviction.DeleteOptions.DryRun...)
		return true, nil, nil
	})
	if results := deschedule(t, client, duplicatesPolicy, true); len(results) != 1 || !cmp.Equal(dry, []string{metav1.DryRunAll}) {
		t.Errorf("results %q with options %q", results, dry)
	}
}

func TestDescheduleReturnsErrorForFewNodesAndForbiddenReads(t *testing.T) {
	parsed, err := parse([]byte("apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies: " + duplicatesPolicy))
	if err != nil {
		t.Fatal(err)
	}
	run := func(client *fake.Clientset) error {
		d := Descheduler{Client: client, Policy: parsed, Report: func(Eviction) { t.Error("evicted") }}
		return d.Deschedule(t.Context())
	}
	if err := run(fake.NewClientset(node("a"), pod("web-1", "a"), pod("web-2", "a"))); !errors.Is(err, ErrFewNodes) {
		t.Errorf("error %v", err)
	}
	client := fake.NewClientset(node("a"), node("b"))
	client.PrependReactor("*", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
	})
	if err := run(client); err == nil || !strings.Contains(err.Error(), "no role") || errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
