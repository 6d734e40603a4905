package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	events "k8s.io/client-go/tools/record"
)

// Factory is a shared informer factory for any API group.
type Factory interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// Start starts the informers that the factories have created. They run until ctx is done. The
// caller must call shutdown after its controllers have stopped. shutdown waits until the informers
// have stopped.
func Start(ctx context.Context, factories ...Factory) (shutdown func()) {
	for _, factory := range factories {
		factory.Start(ctx.Done())
	}
	return func() {
		for _, factory := range factories {
			factory.Shutdown()
		}
	}
}

// recentEvents is the number of events that a recorder compares with new events. Each event takes
// 600 bytes in several caches, which are never emptied. If more than this number of objects cause
// events in turn, repeated events are stored separately instead of being counted. The limit on an
// object's events then has no effect.
const recentEvents = 1024

// Recorder returns an event recorder for a component and the object types in scheme. The caller
// must call shutdown when the recorder is no longer used.
func Recorder(ctx context.Context, client kubernetes.Interface, scheme *runtime.Scheme, component string) (recorder events.EventRecorder, shutdown func()) {
	broadcaster := events.NewBroadcaster(events.WithContext(ctx), events.WithCorrelatorOptions(events.CorrelatorOptions{LRUCacheSize: recentEvents}))
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
}
