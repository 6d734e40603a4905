package router

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	churnTime   = 20 * time.Second
	churnRate   = 50 // changes per second
	churnRoutes = 20 // changes per second that add or remove a route; all others replace a pod
	askAgain    = 2 * time.Millisecond
	giveUp      = 30 * time.Second
)

// scaleResult contains the measurements of a router with many routes, under churn.
type scaleResult struct {
	routes int
	// ready is the time from the start of the router process until the router serves all routes.
	ready time.Duration
	// created contains the times from the request that creates a route to the route's first
	// response. changed contains the times from an endpoints change to the first response from a
	// new endpoint.
	created, changed []time.Duration
	// requests is the number of requests to unchanged routes, and failed is the number of failures.
	requests, failed int64
	reload           float64 // mean duration of a reload, in seconds
	reloads          float64
	seconds          float64 // seconds of CPU time per second of the router's process
	router, haproxy  host.Usage
}

// measureScale adds routes to a router and continuously changes some of them.
func measureScale(ctx context.Context, program string, size int) (scale scaleResult, err error) {
	scale.routes = size
	c, err := newCluster()
	if err != nil {
		return scale, err
	}
	defer c.stop()
	if err := host.Each(ctx, size, func(i int) error {
		if err := c.makeService(ctx, fmt.Sprint("s", i), "podHTTP", podAddress(i, 0)); err != nil {
			return err
		}
		return c.makeRoute(ctx, fmt.Sprint("r", i), fmt.Sprintf("r%d.example.com", i), fmt.Sprint("s", i), "")
	}); err != nil {
		return scale, err
	}
	if scale.ready, err = c.startRouter(ctx, program); err != nil {
		return scale, err
	}
	if err := c.pods(); err != nil {
		return scale, err
	}
	if _, err := c.until(ctx, "r0.example.com", func(resp string) bool { return resp == podAddress(0, 0) }, nil); err != nil {
		return scale, err
	}
	if err := host.Pause(ctx, 10*time.Second); err != nil { // wait until all statuses are written
		return scale, err
	}
	if err := c.churn(ctx, &scale); err != nil {
		return scale, err
	}
	if err := host.Pause(ctx, 7*time.Second); err != nil { // wait until the last reload is complete
		return scale, err
	}
	return scale, c.observe(&scale)
}

// firstPod is the smallest value of the address octet that encodes a pod's generation.
const firstPod = 20

// podAddress returns the address of a service's pod after generation replacements. generation must
// be less than 200.
func podAddress(service, generation int) string {
	return fmt.Sprintf("127.%d.%d.%d", firstPod+generation, service/250, 1+service%250)
}

// churn makes changes and waits until they take effect, while other clients send requests to
// unchanged routes.
func (c *cluster) churn(ctx context.Context, scale *scaleResult) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var load, changes sync.WaitGroup
	steady, end := context.WithCancel(ctx)
	defer end()
	for range 2 {
		load.Go(func() { c.ask(steady, scale) })
	}
	before, err := c.usage()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	note := func(times *[]time.Duration, change func() (time.Duration, error)) {
		changes.Go(func() {
			took, err := change()
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			*times = append(*times, took)
		})
	}
	ticker := time.NewTicker(time.Second / churnRate)
	defer ticker.Stop()
	count := int(churnTime.Seconds()) * churnRate
	hosts := make(chan string, count)
	pods := make([]replacement, scale.routes)
	for i := range count {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch turn := i % churnRate; {
		case turn*churnRoutes/churnRate == (turn+1)*churnRoutes/churnRate:
			service := i * 7919 % scale.routes
			note(&scale.changed, func() (time.Duration, error) { return c.replacePod(ctx, service, &pods[service], scale) })
		case i%4 < 2:
			note(&scale.created, func() (time.Duration, error) { return c.addRoute(ctx, fmt.Sprint("new", i), hosts) })
		default:
			select {
			case name := <-hosts:
				if err := c.routes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
					return err
				}
			default:
			}
		}
	}
	changes.Wait()
	end()
	load.Wait()
	after, err := c.usage()
	scale.seconds = (after.Seconds - before.Seconds) / churnTime.Seconds()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// replacement counts how often a service's pod has been replaced.
type replacement struct {
	mu    sync.Mutex
	times int
}

// replacePod replaces a service's pod. It waits for the first response from the new pod or from a
// pod that replaces the new pod.
func (c *cluster) replacePod(ctx context.Context, service int, pod *replacement, scale *scaleResult) (time.Duration, error) {
	pod.mu.Lock()
	pod.times++
	generation, start := pod.times, time.Now()
	_, err := c.client.DiscoveryV1().EndpointSlices(namespace).Update(ctx, c.slice(fmt.Sprint("s", service), "podHTTP", podAddress(service, generation)), metav1.UpdateOptions{})
	pod.mu.Unlock()
	if err != nil {
		return 0, err
	}
	_, err = c.until(ctx, fmt.Sprintf("r%d.example.com", service), func(resp string) bool {
		var of int
		count, _ := fmt.Sscanf(resp, "127.%d.", &of)
		return count == 1 && of >= firstPod+generation
	}, scale)
	return time.Since(start), err
}

// addRoute creates a route, waits for the route's first response, and then sends the route's name
// to hosts.
func (c *cluster) addRoute(ctx context.Context, name string, hosts chan<- string) (time.Duration, error) {
	start := time.Now()
	if err := c.makeRoute(ctx, name, name+".example.com", "s0", ""); err != nil {
		return 0, err
	}
	_, err := c.until(ctx, name+".example.com", func(resp string) bool { return resp != "503" }, nil)
	took := time.Since(start)
	hosts <- name
	return took, err
}

// until sends requests to a route's host until holds accepts the response, which is a pod's address
// or a status. If scale is not nil, until counts responses that do not come from pods as failures.
func (c *cluster) until(ctx context.Context, name string, holds func(string) bool, scale *scaleResult) (resp string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUp, fmt.Errorf("%s does not get the expected response", name))
	defer cancel()
	for {
		if resp = c.get(ctx, name); holds(resp) {
			return resp, nil
		}
		if scale != nil {
			atomic.AddInt64(&scale.requests, 1)
			if !strings.HasPrefix(resp, "127.") && ctx.Err() == nil {
				atomic.AddInt64(&scale.failed, 1)
			}
		}
		if err := host.Pause(ctx, askAgain); err != nil {
			return resp, fmt.Errorf("%w: %s", err, resp)
		}
	}
}

// ask sends requests to an unchanged route until ctx is done, and counts requests and failures.
func (c *cluster) ask(ctx context.Context, scale *scaleResult) {
	for ctx.Err() == nil {
		resp := c.get(ctx, "r0.example.com")
		if ctx.Err() != nil {
			return
		}
		atomic.AddInt64(&scale.requests, 1)
		if !strings.HasPrefix(resp, "127.") {
			atomic.AddInt64(&scale.failed, 1)
		}
		_ = host.Pause(ctx, askAgain)
	}
}

// get sends a request for a host to the router on a new connection. It returns the pod's response,
// another status, or the error.
func (c *cluster) get(ctx context.Context, host string) string {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+c.ports[httpPort])
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return err.Error()
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err.Error()
	case response.StatusCode != http.StatusOK:
		return strconv.Itoa(response.StatusCode)
	}
	return string(body)
}

func (c *cluster) usage() (host.Usage, error) {
	return host.Process{PID: c.router.Process.Pid}.Usage()
}

// observe records the resource usage of the router's processes, and reads the router's metrics.
func (c *cluster) observe(scale *scaleResult) (err error) {
	if scale.router, err = c.usage(); err != nil {
		return err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	below := map[int]bool{c.router.Process.Pid: true}
	for range 2 { // find HAProxy's master process, and then its worker
		for _, dir := range dirs {
			p, err := host.ReadProcess(dir)
			if err != nil || !below[p.Parent] || below[p.PID] {
				continue
			}
			below[p.PID] = true
			usage, err := p.Usage()
			if err != nil {
				return err
			}
			scale.haproxy.PSS += usage.PSS
			scale.haproxy.Anonymous += usage.Anonymous
		}
	}
	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+c.ports[statsListen]+"/metrics", nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth(statsAccess, statsAccess)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("read the router's metrics: %s", response.Status)
	}
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var sum float64
	for line := range strings.Lines(string(metrics)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "template_router_reload_seconds_sum":
			sum, err = strconv.ParseFloat(value, 64)
		case "template_router_reload_seconds_count":
			scale.reloads, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return err
		}
	}
	scale.reload = sum / scale.reloads
	return nil
}
