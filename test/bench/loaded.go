package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

const (
	// A loaded cluster has loadedPods pods and loadedObjects objects of a resource. loadedWatches
	// clients watch the pods and the objects.
	loadedPods, loadedObjects, loadedWatches = 250, 2000, 20
	// sampleInterval is the time between two requests while the pods start.
	sampleInterval = 200 * time.Millisecond
)

// loaded contains the measurements of a loaded cluster.
type loaded struct {
	// Running is the time from the creation of the first pod until all pods are running.
	Running time.Duration
	// Get and List contain the times of requests for one pod and for all pods while the pods start.
	Get, List []time.Duration
	// Seconds is the CPU time, in seconds, that the side's processes use until all pods are running.
	Seconds float64
	// Idle contains each process's resource usage when the loaded cluster is idle again.
	Idle []host.Usage
}

// measureLoaded loads a cluster with pods and with objects of a resource, measures the cluster, and
// then removes the pods and the objects.
func measureLoaded(ctx context.Context, h *host.Host, c *cluster, resource apiResource, idle time.Duration) (result loaded, err error) {
	server := c.client.CoreV1().RESTClient()
	if err := host.Each(ctx, loadedObjects, func(i int) error { return resource.create(ctx, server, i) }); err != nil {
		return result, fmt.Errorf("create %s: %w", resource.path, err)
	}
	watches, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for range loadedWatches {
		for _, path := range []string{resource.path, podsPath} {
			clients.Go(func() { _ = watchAll(watches, server, path) })
		}
	}
	before, err := h.Usage()
	if err != nil {
		return result, err
	}
	sampled, stopSamples := context.WithCancel(ctx)
	samples := make(chan error, 1)
	go func() { samples <- result.sample(sampled, server) }()
	result.Running, err = c.startMany(ctx, "loaded", loadedPods, pausePod)
	stopSamples()
	if err := errors.Join(err, <-samples); err != nil {
		return result, err
	}
	after, err := h.Usage()
	if err != nil {
		return result, err
	}
	seconds := func(u host.Usage) float64 { return u.Seconds }
	result.Seconds = host.Total(after, seconds) - host.Total(before, seconds)
	fmt.Fprintf(os.Stderr, ", %d pods %.1fs", loadedPods, result.Running.Seconds())
	if result.Idle, err = measureIdle(ctx, h, idle); err != nil {
		return result, err
	}
	if err := c.deleteMany(ctx, "loaded"); err != nil {
		return result, err
	}
	return result, resource.remove(ctx, server)
}

// podsPath is the path of the project's pods.
const podsPath = "/api/v1/namespaces/default/pods"

// sample repeatedly sends two requests, one for a pod and one for all pods, until ctx is done.
func (l *loaded) sample(ctx context.Context, server clientrest.Interface) error {
	for host.Pause(ctx, sampleInterval) == nil {
		for path, times := range map[string]*[]time.Duration{podsPath + "/loaded-0": &l.Get, podsPath: &l.List} {
			start := time.Now()
			if _, err := server.Get().AbsPath(path).DoRaw(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			*times = append(*times, time.Since(start))
		}
	}
	return nil
}

// watchAll reads and discards all changes of a collection until ctx is done.
func watchAll(ctx context.Context, server clientrest.Interface, path string) error {
	stream, err := server.Get().AbsPath(path).Param("watch", "true").Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(io.Discard, stream)
	return err
}

// loadedRows returns the comparisons of loaded clusters, which are measured only in each side's
// last round.
func loadedRows() []row {
	last := func(value func(loaded) float64) func([]round) float64 {
		return func(rounds []round) float64 { return value(rounds[len(rounds)-1].Loaded) }
	}
	idle := func(quantity func(host.Usage) float64) func([]round) float64 {
		return last(func(l loaded) float64 { return host.Total(l.Idle, quantity) })
	}
	p99 := func(times func(loaded) []time.Duration) func([]round) float64 {
		return last(func(l loaded) float64 { return stats.Percentile(stats.Seconds(times(l)), 99) })
	}
	return []row{
		{fmt.Sprintf("%d pods together", loadedPods), last(func(l loaded) float64 { return l.Running.Seconds() }), stats.InSeconds, aim{limit: 60}},
		{"meanwhile: CPU time", last(func(l loaded) float64 { return l.Seconds }), stats.InSeconds, aim{}},
		{"meanwhile: get of a pod, p99", p99(func(l loaded) []time.Duration { return l.Get }), stats.InSeconds, aim{limit: 1}},
		{"meanwhile: list of pods, p99", p99(func(l loaded) []time.Duration { return l.List }), stats.InSeconds, aim{limit: 5}},
		{"loaded: proportional set size", idle(func(u host.Usage) float64 { return float64(u.PSS) }), stats.Mebibytes, aim{most: 0.6}},
		{"loaded: anonymous memory", idle(func(u host.Usage) float64 { return float64(u.Anonymous) }), stats.Mebibytes, aim{most: 0.7}},
	}
}
