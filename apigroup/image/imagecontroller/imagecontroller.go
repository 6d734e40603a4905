// Package imagecontroller contains the image stream controllers. The import controller imports the
// remote images that tags refer to, and repeats the import periodically if a tag requires it. For
// each kind of workload, a trigger controller updates the images in workloads that have a triggers
// annotation. The record controller reassigns or deletes image records whose project has been
// deleted.
//
// Source: OpenShift Container Platform 3.9 Architecture, scheduled import and image change
// triggers; 3.11's annotation image.openshift.io/triggers.
package imagecontroller

import (
	"context"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// Streams is the component that runs the package's controllers.
type Streams struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Interval is the interval between scheduled imports. 0 disables them.
	Interval time.Duration
	// PerMinute is the maximum number of scheduled imports per minute. 0 means no limit.
	PerMinute int

	turns turns
}

// Name implements the component interface.
func (*Streams) Name() string { return "image-streams" }

// Run runs the controllers until ctx is done. It calls ready when the caches have synced.
func (s *Streams) Run(ctx context.Context, ready func()) error {
	recorder, shutdown := controller.Recorder(ctx, s.Deps.Kube, scheme.Scheme, "image-trigger-controller")
	defer shutdown()
	streams := s.Deps.ImageInformers.Image().V1().ImageStreams().Informer()
	namespaces := s.Deps.Informers.Core().V1().Namespaces().Informer()
	manager := controller.Manager{s.importController(s.Deps.Images.ImageV1(), streams, namespaces)}
	for _, workload := range workloads() {
		t := &triggerController{
			workload: workload, streams: streams, heads: s.Deps.MetadataInformers.ForResource(workload.resource).Informer(), objects: s.Deps.Dynamic,
			check: pull.Reviewed(s.Deps.Kube.AuthorizationV1()), events: recorder,
		}
		trigger, err := t.controller()
		if err != nil {
			return err
		}
		manager = append(manager, trigger)
	}
	records, err := newRecords(s.Deps)
	if err != nil {
		return err
	}
	manager = append(manager, records.controller())
	s.Deps.Start()
	return manager.Run(ctx, ready)
}

// limiter returns the rate limiter for scheduled imports.
func (s *Streams) limiter() flowcontrol.RateLimiter {
	if s.PerMinute <= 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(s.PerMinute)/60, s.PerMinute)
}

// stream returns a stream from the cache, or nil.
func stream(streams cache.SharedIndexInformer, key controller.Key) *imagev1.ImageStream {
	existing, ok, err := streams.GetIndexer().GetByKey(key.String())
	if err != nil || !ok {
		return nil
	}
	return existing.(*imagev1.ImageStream)
}
