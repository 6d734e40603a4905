package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// side is one of the two clusters that are compared.
type side interface {
	// start starts all processes. It returns when the API server and the node are ready.
	start(ctx context.Context) (*cluster, error)
	// stop stops all processes but keeps the data.
	stop(ctx context.Context) error
	// prepare performs the steps after start that the cluster requires before it can run pods.
	prepare(ctx context.Context) error
	// discard stops running processes and removes files outside the host's directory.
	discard(ctx context.Context) error
}

// sideNames contains the sides in the order of the report.
var sideNames = [2]string{"slipway", "stock"}

// round contains a side's measurements in one round.
type round struct {
	// Cold and Warm are the times from the start of the first process until the cluster is ready.
	// Cold starts with an empty data directory, and Warm with the data of the previous run.
	Cold, Warm time.Duration
	// ColdSeconds is the CPU time, in seconds, that the processes use until the cluster is ready
	// after the cold start.
	ColdSeconds float64
	// Pods contains the times from the creation of a pod until the pod is running. Volumes contains
	// the same times for pods with an attachable FlexVolume, and Hanging contains these times while
	// another driver hangs.
	Pods, Volumes, Hanging []time.Duration
	// Together is the time from the creation of the first pod until all pods are running. Count is
	// the number of pods. Each pod has an attachable FlexVolume.
	// TogetherSeconds is the CPU time, in seconds, that the side's processes use to start and delete
	// these pods.
	Together        time.Duration
	TogetherSeconds float64
	Count           int
	// Requests contains the times of API requests. The stock side has no OpenShift resources.
	Requests []apiTimes
	// Loaded contains the measurements of the loaded cluster, in the last round.
	Loaded loaded
	// Idle contains each process's resource usage in the idle cluster. Its Seconds is the CPU time
	// per second, in seconds.
	Idle []host.Usage
}

// measure runs one round for one side on a new host. It always removes the host. The last round
// includes many objects and pods.
func measure(ctx context.Context, h *host.Host, open func(*host.Host) (side, error), o options, last bool) (result round, err error) {
	var s side
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), host.CleanupTime)
		defer cancel()
		if s != nil {
			err = errors.Join(err, s.discard(ctx))
		}
		err = errors.Join(err, h.Remove(ctx))
	}()
	if s, err = open(h); err != nil {
		return result, err
	}
	if err := measureFirst(ctx, h, s, o, last, &result); err != nil {
		return result, err
	}
	if err := s.stop(ctx); err != nil {
		return result, fmt.Errorf("stop: %w", err)
	}
	if result.Warm, _, err = timedStart(ctx, s); err != nil {
		return result, fmt.Errorf("second start: %w", err)
	}
	fmt.Fprintf(os.Stderr, ", ready again in %.2fs", result.Warm.Seconds())
	return result, s.stop(ctx)
}

// measureFirst measures the cluster's first run.
func measureFirst(ctx context.Context, h *host.Host, s side, o options, last bool, result *round) (err error) {
	var c *cluster
	if result.Cold, c, err = timedStart(ctx, s); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	fmt.Fprintf(os.Stderr, " ready %.2fs", result.Cold.Seconds())
	begin, err := h.Usage()
	if err != nil {
		return err
	}
	result.ColdSeconds = host.Total(begin, func(u host.Usage) float64 { return u.Seconds })

	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := c.fill(ctx); err != nil {
		return err
	}
	if result.Idle, err = measureIdle(ctx, h, o.idle); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, ", idle PSS %s", stats.Mebibytes(host.Total(result.Idle, func(u host.Usage) float64 { return float64(u.PSS) })))

	for number := range o.pods {
		name := fmt.Sprintf("pod-%d", number)
		took, err := c.startPod(ctx, pausePod(name))
		if err != nil {
			return err
		}
		result.Pods = append(result.Pods, took)
		if err := c.deletePod(ctx, name); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, ", pod %.2fs", stats.Median(stats.Seconds(result.Pods)))
	if err := measureVolumes(ctx, h, c, o, result); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, ", with volume %.2fs, %d together %.1fs, while another driver hangs %.2fs",
		stats.Median(stats.Seconds(result.Volumes)), result.Count, result.Together.Seconds(), stats.Median(stats.Seconds(result.Hanging)))
	if err := measureRequests(ctx, h, c, s, o, last, result); err != nil {
		return err
	}
	return c.empty(ctx)
}

// measureRequests measures API requests. In the last round, it first measures a loaded cluster, and
// finally measures requests for many objects. The loaded cluster comes first, because the other
// requests are sent only to Slipway, and their deleted objects remain in etcd and in watch caches
// for minutes.
func measureRequests(ctx context.Context, h *host.Host, c *cluster, s side, o options, last bool, result *round) (err error) {
	_, ours := s.(*slipway)
	if last {
		resource := apiResources[0]
		if ours {
			resource = apiResources[1]
		}
		if result.Loaded, err = measureLoaded(ctx, h, c, resource, o.idle); err != nil {
			return err
		}
	}
	if !ours {
		return nil
	}
	server := c.client.CoreV1().RESTClient()
	if result.Requests, err = measureAPI(ctx, server); err != nil || !last {
		return err
	}
	lists, err := measureLists(ctx, server)
	result.Requests = append(result.Requests, lists...)
	return err
}

// timedStart starts a side and measures the duration.
func timedStart(ctx context.Context, s side) (time.Duration, *cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, host.ReadyTimeout)
	defer cancel()
	start := time.Now()
	c, err := s.start(ctx)
	return time.Since(start), c, err
}

// measureIdle leaves the cluster idle and returns its processes' resource usage. It measures the
// CPU time only in the last two thirds of the idle period, because work from the start continues
// for a while.
func measureIdle(ctx context.Context, h *host.Host, idle time.Duration) ([]host.Usage, error) {
	if err := host.Pause(ctx, idle/3); err != nil {
		return nil, err
	}
	before, err := h.Usage()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := host.Pause(ctx, idle-idle/3); err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	after, err := h.Usage()
	if err != nil {
		return nil, err
	}
	earlier := map[string]float64{}
	for _, u := range before {
		earlier[u.Name] += u.Seconds
	}
	after = host.Merge(after)
	for i := range after {
		after[i].Seconds = (after[i].Seconds - earlier[after[i].Name]) / took
	}
	return after, nil
}
