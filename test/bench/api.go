package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/bench/stats"
)

const (
	// apiCount is the number of objects per resource that are created, read and watched.
	apiCount = 500
	// maxAPIRatio is the target for OpenShift requests: the maximum ratio of their time to the time
	// of ConfigMap requests.
	maxAPIRatio = 1.1
)

// apiResource is a resource for which requests are measured.
type apiResource struct {
	path string // path of the collection
	body string // body of an object, with placeholders for its name
}

// apiResources contains a Kubernetes resource and an OpenShift resource. Requests alternate between
// them. The ConfigMap's data is as long as the Route's spec and status, so that the responses have
// about the same length.
var apiResources = [2]apiResource{
	{"/api/v1/namespaces/default/configmaps",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %[1]q}, "data": {"host": "%[1]s.example.com", "value": "` + strings.Repeat("0123456789", 70) + `"}}`},
	{"/apis/route.openshift.io/v1/namespaces/default/routes",
		`{"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": %[1]q}, "spec": {"host": "%[1]s.example.com", "to": {"name": "web"}}}`},
}

// create creates the object with a number.
func (r apiResource) create(ctx context.Context, server clientrest.Interface, number int) error {
	body := fmt.Appendf(nil, r.body, fmt.Sprintf("bench-%d", number))
	return server.Post().AbsPath(r.path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// remove removes all objects of the resource.
func (r apiResource) remove(ctx context.Context, server clientrest.Interface) error {
	if err := server.Delete().AbsPath(r.path).Do(ctx).Error(); err != nil {
		return fmt.Errorf("delete %s: %w", r.path, err)
	}
	return nil
}

// apiTimes contains the times of one verb for both resources.
type apiTimes struct {
	verb  string
	times [2][]time.Duration
}

// apiVerbs contains the measured kinds of requests, in the order of their measurement.
var apiVerbs = []string{"create", "get", "list of 100", "watch until the first event"}

// apiPercentiles contains the reported percentiles of the times.
var apiPercentiles = []struct {
	name  string
	value func([]float64) float64
}{{"p50", stats.Median}, {"p99", func(v []float64) float64 { return stats.Percentile(v, 99) }}}

// preciseMilliseconds formats a time in seconds as milliseconds, with two decimals.
func preciseMilliseconds(v float64) string { return fmt.Sprintf("%.2f ms", 1000*v) }

// measureAPI measures requests for both resources, and then removes their objects.
func measureAPI(ctx context.Context, server clientrest.Interface) ([]apiTimes, error) {
	create := func(r apiResource, number int) error { return r.create(ctx, server, number) }
	read := func(r apiResource, number int) error {
		_, err := server.Get().AbsPath(fmt.Sprintf("%s/bench-%d", r.path, number)).DoRaw(ctx)
		return err
	}
	list := func(r apiResource, _ int) error {
		_, err := server.Get().AbsPath(r.path).Param("limit", "100").DoRaw(ctx)
		return err
	}
	watch := func(r apiResource, number int) error { return watchOne(ctx, server, r, number) }
	var times []apiTimes
	for i, request := range []func(apiResource, int) error{create, read, list, watch} {
		result, err := timeRequests(apiVerbs[i], apiCount, request)
		if err != nil {
			return nil, err
		}
		times = append(times, result)
	}
	return times, removeObjects(ctx, server)
}

// timeRequests measures requests that alternate between both resources.
func timeRequests(verb string, count int, request func(r apiResource, number int) error) (apiTimes, error) {
	result := apiTimes{verb: verb}
	for number := range count {
		for side, resource := range apiResources {
			start := time.Now()
			if err := request(resource, number); err != nil {
				return apiTimes{}, fmt.Errorf("%s %s: %w", verb, resource.path, err)
			}
			result.times[side] = append(result.times[side], time.Since(start))
		}
	}
	return result, nil
}

// removeObjects removes all objects of both resources.
func removeObjects(ctx context.Context, server clientrest.Interface) error {
	var errs []error
	for _, resource := range apiResources {
		errs = append(errs, resource.remove(ctx, server))
	}
	return errors.Join(errs...)
}

// watchOne starts a watch on one object and waits for the watch's first event.
func watchOne(ctx context.Context, server clientrest.Interface, r apiResource, number int) error {
	stream, err := server.Get().AbsPath(r.path).Param("watch", "true").
		Param("fieldSelector", fmt.Sprintf("metadata.name=bench-%d", number)).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = bufio.NewReader(stream).ReadString('\n')
	return err
}

// requests merges the times of all rounds.
func (r *report) requests() (all []apiTimes) {
	for _, round := range r.Sides[0] {
		for i, result := range round.Requests {
			if i == len(all) {
				all = append(all, apiTimes{verb: result.verb})
			}
			for side := range result.times {
				all[i].times[side] = append(all[i].times[side], result.times[side]...)
			}
		}
	}
	return all
}

// api returns the table for API requests.
func (r *report) api() stats.Table {
	t := stats.Table{Heading: []string{"API request", "ConfigMap", "Route", "ratio", "aim", ""}}
	for _, result := range r.requests() {
		for _, of := range apiPercentiles {
			kubernetes, slipway := of.value(stats.Seconds(result.times[0])), of.value(stats.Seconds(result.times[1]))
			outcome := "met"
			if slipway/kubernetes > maxAPIRatio {
				outcome = "missed"
			}
			t.Rows = append(t.Rows, []string{result.verb + ", " + of.name, preciseMilliseconds(kubernetes), preciseMilliseconds(slipway),
				fmt.Sprintf("%.2f", slipway/kubernetes), fmt.Sprintf("<= %.2f", maxAPIRatio), outcome})
		}
	}
	return t
}
