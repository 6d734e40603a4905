package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/metrics-server/pkg/storage"

	"github.com/slipway-platform/slipway/controller"
)

const (
	// firstInterval is the interval between the first readings. It is short, because a node's CPU
	// usage is computed from two readings.
	firstInterval = 5 * time.Second
	// readTimeout is the timeout for reading metrics from one node.
	readTimeout = 10 * time.Second
	// maxReading is the maximum size of a reading, in bytes. A reading of 250 pods, each with two
	// containers, has a size of 250 KB.
	maxReading = 16 << 20
	// concurrency is the maximum number of nodes from which metrics are read at the same time.
	concurrency = 20
)

// Collector is the component that reads CPU and memory usage from kubelets.
type Collector struct {
	Deps  *controller.Deps
	Usage *Usage
}

// Name returns the component's name.
func (c *Collector) Name() string { return "resource-metrics" }

// Run reads metrics from all nodes periodically until ctx is done.
func (c *Collector) Run(ctx context.Context, ready func()) error {
	pods := c.Deps.Informers.Core().V1().Pods().Lister()
	c.Deps.Start()
	ready()
	for {
		c.collect(ctx, pods)
		wait := interval
		if !c.Usage.storage.Ready() {
			wait = firstInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// collect reads metrics from all nodes. A node that does not respond has no usage until the next
// successful reading.
func (c *Collector) collect(ctx context.Context, pods corelisters.PodLister) {
	nodes, err := c.Deps.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		slog.Warn("cannot list nodes to read their usage", "error", err)
		return
	}
	batch := newBatch()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, node := range nodes.Items {
		group.Go(func() error {
			reading, err := c.read(ctx, node.Name)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = add(bytes.NewReader(reading), node.Name, pods, batch)
			}
			if err != nil && ctx.Err() == nil {
				slog.Debug("cannot read usage of node", "node", node.Name, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	if ctx.Err() == nil {
		c.Usage.storage.Store(batch)
	}
}

// read returns the response of the kubelet's /metrics/resource endpoint.
func (c *Collector) read(ctx context.Context, node string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := c.Deps.Kube.CoreV1().RESTClient().Get().Resource("nodes").Name(node).
		SubResource("proxy").Suffix("metrics/resource").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	defer stream.Close()
	reading, err := io.ReadAll(io.LimitReader(stream, maxReading+1))
	if err == nil && len(reading) > maxReading {
		err = fmt.Errorf("the reading is larger than %d bytes", maxReading)
	}
	return reading, err
}

func newBatch() *storage.MetricsBatch {
	return &storage.MetricsBatch{Nodes: map[string]storage.MetricsPoint{}, Pods: map[types.NamespacedName]storage.PodMetricsPoint{}}
}

// add adds a node's reading to batch. It ignores pods that are not on the node. Otherwise, a host
// could report usage for other hosts' pods, and autoscalers would scale the workloads of these
// pods.
func add(reading io.Reader, node string, pods corelisters.PodLister, batch *storage.MetricsBatch) error {
	own := newBatch()
	if err := parse(reading, node, own); err != nil {
		return err
	}
	maps.Copy(batch.Nodes, own.Nodes)
	for name, point := range own.Pods {
		if pod, err := pods.Pods(name.Namespace).Get(name.Name); err == nil && pod.Spec.NodeName == node {
			batch.Pods[name] = point
		}
	}
	return nil
}
