package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"

	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	// listCount is the number of objects per resource in long lists. listTimes is the number of
	// list requests, and also the number of watches.
	listCount, listTimes = 10_000, 20
	// initialEventsEnd is the annotation on the bookmark that ends a watch's initial events.
	initialEventsEnd = "k8s.io/initial-events-end"
)

// measureLists measures lists of many objects, and watches that first send all objects, for both
// resources. It removes the objects at the end.
func measureLists(ctx context.Context, server clientrest.Interface) ([]apiTimes, error) {
	for _, resource := range apiResources {
		if err := host.Each(ctx, listCount, func(i int) error { return resource.create(ctx, server, i) }); err != nil {
			return nil, fmt.Errorf("create %s: %w", resource.path, err)
		}
	}
	list := func(r apiResource, _ int) error {
		_, err := server.Get().AbsPath(r.path).DoRaw(ctx)
		return err
	}
	watch := func(r apiResource, _ int) error { return watchInitial(ctx, server, r) }
	var times []apiTimes
	for _, step := range []struct {
		verb string
		do   func(apiResource, int) error
	}{{fmt.Sprintf("list of %d", listCount), list}, {fmt.Sprintf("start of a watch of %d", listCount), watch}} {
		result, err := timeRequests(step.verb, listTimes, step.do)
		if err != nil {
			return nil, err
		}
		times = append(times, result)
	}
	return times, removeObjects(ctx, server)
}

// watchInitial starts a watch and reads its initial events.
func watchInitial(ctx context.Context, server clientrest.Interface, r apiResource) error {
	stream, err := server.Get().AbsPath(r.path).Param("watch", "true").Param("sendInitialEvents", "true").
		Param("allowWatchBookmarks", "true").Param("resourceVersionMatch", "NotOlderThan").Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	events := bufio.NewReader(stream)
	for {
		event, err := events.ReadBytes('\n')
		if err != nil {
			return err
		}
		if bytes.Contains(event, []byte(initialEventsEnd)) {
			return nil
		}
	}
}
