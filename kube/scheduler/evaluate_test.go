package scheduler

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	componentconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// load decodes a Policy, and fails the test if the Policy is invalid.
func load(t *testing.T, text string) *policy.Policy {
	t.Helper()
	parsed := &policy.Policy{}
	if err := yaml.UnmarshalStrict([]byte(text), parsed); err != nil {
		t.Fatal(err)
	}
	if problems := parsed.Check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return parsed
}

// cluster holds the objects in the scheduler's caches.
type cluster struct {
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	objects []runtime.Object
}

// verdict is the scheduler's decision about a pod: the scores of the nodes that fit, and the
// reasons why the other nodes do not fit.
type verdict struct {
	scores  map[string]int64
	reasons map[string]string
}

// best returns the nodes with the highest score, sorted and separated by spaces.
func (v *verdict) best() string {
	var best []string
	for _, name := range slices.Sorted(maps.Keys(v.scores)) {
		switch {
		case len(best) == 0 || v.scores[name] > v.scores[best[0]]:
			best = []string{name}
		case v.scores[name] == v.scores[best[0]]:
			best = append(best, name)
		}
	}
	return strings.Join(best, " ")
}

// fitting returns the nodes that fit, sorted and separated by spaces.
func (v *verdict) fitting() string { return strings.Join(slices.Sorted(maps.Keys(v.scores)), " ") }

// start returns an upstream scheduler framework with the given settings and a snapshot of the
// cluster.
func start(t *testing.T, settings Settings, c cluster) schedulerframework.Framework {
	t.Helper()
	built, err := settings.Build(componentconfig.ClientConnectionConfiguration{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, built.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	parsed, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		t.Fatalf("load\n%s: %v", built.YAML, err)
	}
	client := fake.NewClientset(c.objects...)
	factory := scheduler.NewInformerFactory(client, 0, nil)
	running, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100) },
		scheduler.WithProfiles(parsed.Profiles...),
		scheduler.WithExtenders(parsed.Extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(built.Plugins),
		scheduler.WithNodeInfoSnapshot(cache.NewSnapshot(c.pods, c.nodes)),
	)
	if err != nil {
		t.Fatalf("start with\n%s: %v", built.YAML, err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return running.Profiles[corev1.DefaultSchedulerName]
}

// evaluate returns the scheduler's decision about a pod.
func evaluate(t *testing.T, settings Settings, c cluster, pod *corev1.Pod) *verdict {
	t.Helper()
	profile := start(t, settings, c)
	ctx, state := t.Context(), schedulerframework.NewCycleState()
	nodes, err := profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	v := &verdict{scores: map[string]int64{}, reasons: map[string]string{}}
	if _, status, _ := profile.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	var feasible []framework.NodeInfo
	for _, node := range nodes {
		if status := profile.RunFilterPlugins(ctx, state, pod, node); !status.IsSuccess() {
			v.reasons[node.Node().Name] = strings.Join(status.Reasons(), ", ")
			continue
		}
		feasible = append(feasible, node)
	}
	if status := profile.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		t.Fatal(status)
	}
	scores, status := profile.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	for _, score := range scores {
		v.scores[score.Name] = score.TotalScore
	}
	return v
}

// node returns a ready node. Each label has the form `region=r1`.
func node(name string, labels ...string) *corev1.Node {
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("100")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(labels)},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// pod returns a pod with labels. node is empty if the pod has not been scheduled.
func pod(name, node string, labels ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: set(labels)},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/web"}},
		},
	}
}

// service returns the `web` service, which selects pods with the label app=web.
func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
	}
}

func set(pairs []string) map[string]string {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	return labels
}
