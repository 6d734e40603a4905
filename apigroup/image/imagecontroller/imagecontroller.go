// Package imagecontroller contains the controllers of image streams. One imports the images of
// other registries that tags point at, periodically if a tag requires it. The others update images
// in workloads with triggers in their annotation.
//
// Source: OpenShift Container Platform 3.9 Architecture, scheduled import and image change
// triggers; 3.11's annotation image.openshift.io/triggers.
package imagecontroller

import (
	"context"
	"fmt"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// Streams is the component that runs the controllers.
type Streams struct {
	// Client is the configuration of a client with all rights.
	Client *rest.Config
	// Interval is the interval of scheduled imports. 0 disables them.
	Interval time.Duration
	// PerMinute limits scheduled imports. 0 means no limit.
	PerMinute int
}

// Name implements the component interface.
func (*Streams) Name() string { return "image-streams" }

// Run runs the controllers until ctx ends. It calls ready when the caches are filled.
func (s *Streams) Run(ctx context.Context, ready func()) error {
	client, err := imageclient.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for image streams: %w", err)
	}
	objects, err := dynamic.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for image triggers: %w", err)
	}
	heads, err := metadata.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for image triggers: %w", err)
	}
	kube, err := kubernetes.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for image triggers: %w", err)
	}
	recorder, shutdown := controller.Recorder(ctx, kube, scheme.Scheme, "image-trigger-controller")
	defer shutdown()
	streams := informer(client)
	factory := metadatainformer.NewSharedInformerFactory(heads, 0)
	loops := controller.Set{s.importing(client, streams)}
	for _, workload := range workloads() {
		t := &triggering{
			workload: workload, streams: streams, heads: factory.ForResource(workload.resource).Informer(), objects: objects,
			check: pull.Reviewed(kube.AuthorizationV1()), events: recorder,
		}
		loop, err := t.loop()
		if err != nil {
			return err
		}
		loops = append(loops, loop)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		streams.RunWithContext(ctx)
	}()
	factory.Start(ctx.Done())
	defer func() {
		<-stopped
		factory.Shutdown()
	}()
	return loops.Run(ctx, ready)
}

// informer returns an informer for all image streams.
func informer(client imageclient.ImageV1Interface) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.ImageStreams("").List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.ImageStreams("").Watch(ctx, options)
		},
	}, &imagev1.ImageStream{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// limiter returns the rate limiter of scheduled imports.
func (s *Streams) limiter() flowcontrol.RateLimiter {
	if s.PerMinute <= 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(s.PerMinute)/60, s.PerMinute)
}

// stream returns a stream from the cache, or nil.
func stream(streams cache.SharedIndexInformer, key controller.Key) *imagev1.ImageStream {
	found, ok, err := streams.GetIndexer().GetByKey(key.String())
	if err != nil || !ok {
		return nil
	}
	return found.(*imagev1.ImageStream)
}
