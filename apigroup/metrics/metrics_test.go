package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/slipway-platform/slipway/apiserver"
)

// reading returns a kubelet's response at the given time. cpu is the CPU time in seconds.
func reading(at time.Time, cpu float64) string {
	ms := at.UnixMilli()
	return fmt.Sprintf(`# HELP node_cpu_usage_seconds_total Cumulative cpu time
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total %[2]v %[1]d
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.048576e+06 %[1]d
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="web",namespace="shop",pod="web-1"} %[2]v %[1]d
container_cpu_usage_seconds_total{container="side",namespace="shop",pod="web-1"} %[2]v %[1]d
container_cpu_usage_seconds_total{container="new",namespace="shop",pod="web-2"} %[2]v %[1]d
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="web",namespace="shop",pod="web-1"} 2048 %[1]d
container_memory_working_set_bytes{container="side",namespace="shop",pod="web-1"} 1024 %[1]d
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="web",namespace="shop",pod="web-1"} 1.5e+09 %[1]d
container_start_time_seconds{container="side",namespace="shop",pod="web-1"} 1.5e+09 %[1]d
# TYPE scrape_error gauge
scrape_error 0
`, ms, cpu)
}

// store stores a reading of node host1.
func store(t *testing.T, usage *Usage, text string) {
	t.Helper()
	batch := newBatch()
	if err := parse(strings.NewReader(text), "host1", batch); err != nil {
		t.Fatal(err)
	}
	usage.storage.Store(batch)
}

// serve returns the resources for a cluster with a node named host1 and two pods.
func serve(t *testing.T, usage *Usage) (*nodes, *pods) {
	t.Helper()
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host1", Labels: map[string]string{"zone": "a"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2"}},
	)
	deps := apiserver.Deps{Informers: informers.NewSharedInformerFactory(client, 0)}
	n, p := newNodes(deps, usage), newPods(deps, usage)
	deps.Informers.Start(t.Context().Done())
	deps.Informers.WaitForCacheSync(t.Context().Done())
	return n, p
}

func TestUsageIsComputedFromTwoReadings(t *testing.T) {
	usage := NewUsage()
	n, p := serve(t, usage)
	ctx := request.WithNamespace(t.Context(), "shop")
	start := time.Now().Add(-time.Minute)
	store(t, usage, reading(start, 100))
	if _, err := n.Get(ctx, "host1", nil); !apierrors.IsNotFound(err) {
		t.Errorf("one reading: %v, want not found", err)
	}
	store(t, usage, reading(start.Add(10*time.Second), 105))

	object, err := n.Get(ctx, "host1", nil)
	if err != nil {
		t.Fatal(err)
	}
	node := object.(*v1beta1.NodeMetrics)
	if cpu, memory := node.Usage.Cpu().MilliValue(), node.Usage.Memory().String(); cpu != 500 || memory != "1Mi" || node.Window.Duration != 10*time.Second {
		t.Errorf("node uses %dm and %s in %s, want 500m and 1Mi in 10s", cpu, memory, node.Window.Duration)
	}
	object, err = p.Get(ctx, "web-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := object.(*v1beta1.PodMetrics)
	total := sum(pod)
	if len(pod.Containers) != 2 || total.Cpu().MilliValue() != 1000 || total.Memory().Value() != 3072 {
		t.Errorf("pod has %d containers, uses %s and %s", len(pod.Containers), total.Cpu(), total.Memory())
	}
	// A container without memory usage has terminated, so its pod has no usage.
	if _, err := p.Get(ctx, "web-2", nil); !apierrors.IsNotFound(err) {
		t.Errorf("pod without usage: %v, want not found", err)
	}
	if _, err := p.Get(ctx, "web-3", nil); !apierrors.IsNotFound(err) {
		t.Errorf("missing pod: %v, want not found", err)
	}
}

func TestUsageOfPodsOnOtherNodesIsIgnored(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	err := indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Spec: corev1.PodSpec{NodeName: "host1"}})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"host1": 1, "host2": 0} {
		batch := newBatch()
		if err := add(strings.NewReader(reading(time.Now(), 1)), node, corelisters.NewPodLister(indexer), batch); err != nil {
			t.Fatal(err)
		}
		if len(batch.Pods) != want || len(batch.Nodes) != 1 {
			t.Errorf("%s reports the usage of %d pods and %d nodes, want %d and 1", node, len(batch.Pods), len(batch.Nodes), want)
		}
	}
}

func TestListsAreSelected(t *testing.T) {
	usage := NewUsage()
	n, p := serve(t, usage)
	start := time.Now().Add(-time.Minute)
	store(t, usage, reading(start, 1))
	store(t, usage, reading(start.Add(10*time.Second), 2))
	for name, tt := range map[string]struct {
		options   *internalversion.ListOptions
		namespace string
		nodes     int
		pods      int
	}{
		"all":             {nil, "", 1, 1},
		"namespace":       {nil, "shop", 1, 1},
		"other namespace": {nil, "other", 1, 0},
		"label of pod":    {&internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})}, "", 0, 1},
		"label of node":   {&internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"zone": "a"})}, "", 1, 0},
		"name":            {&internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "web-1")}, "", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := request.WithNamespace(t.Context(), tt.namespace)
			nodeList, err := n.List(ctx, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			podList, err := p.List(ctx, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(nodeList.(*v1beta1.NodeMetricsList).Items); got != tt.nodes {
				t.Errorf("%d nodes, want %d", got, tt.nodes)
			}
			if got := len(podList.(*v1beta1.PodMetricsList).Items); got != tt.pods {
				t.Errorf("%d pods, want %d", got, tt.pods)
			}
		})
	}
}

func TestTableHasUsage(t *testing.T) {
	usage := NewUsage()
	n, p := serve(t, usage)
	start := time.Now().Add(-time.Minute)
	store(t, usage, reading(start, 1))
	store(t, usage, reading(start.Add(10*time.Second), 2))
	ctx := request.WithNamespace(t.Context(), "shop")
	for name, tt := range map[string]struct {
		list    func() (runtime.Object, error)
		convert func(runtime.Object) (*metav1.Table, error)
		want    string
	}{
		"nodes": {
			func() (runtime.Object, error) { return n.List(ctx, nil) },
			func(o runtime.Object) (*metav1.Table, error) { return n.ConvertToTable(ctx, o, nil) },
			"[host1 100m 1Mi 10s]",
		},
		"pods": {
			func() (runtime.Object, error) { return p.List(ctx, nil) },
			func(o runtime.Object) (*metav1.Table, error) { return p.ConvertToTable(ctx, o, nil) },
			"[web-1 200m 3Ki 10s]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := tt.list()
			if err != nil {
				t.Fatal(err)
			}
			table, err := tt.convert(list)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(table.Rows[0].Cells); got != tt.want {
				t.Errorf("row %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMalformedReadingIsRejected(t *testing.T) {
	batch := newBatch()
	if err := parse(strings.NewReader("<html>"), "host1", batch); err == nil || len(batch.Nodes) > 0 {
		t.Errorf("malformed reading: %v, nodes %v", err, batch.Nodes)
	}
}
