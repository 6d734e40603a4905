package buildcontroller

import (
	"context"
	"fmt"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// imageChangeController instantiates a configuration's build when the image of one of the
// configuration's triggers changes.
type imageChangeController struct {
	client  buildclient.BuildV1Interface
	configs buildlisters.BuildConfigLister
	streams imagelisters.ImageStreamLister
	access  streamAccess
	events  record.EventRecorder
}

// byStream is the name of the index that maps image streams to the configurations whose triggers
// watch them.
const byStream = "stream"

func (l *imageChangeController) controller(configs, streams cache.SharedIndexInformer) (controller.Controller, error) {
	changes, err := controller.WatchReferences(configs, byStream, watchedStreams, streams)
	if err != nil {
		return controller.Controller{}, fmt.Errorf("watch build configurations' image streams: %w", err)
	}
	return controller.Controller{
		Name:      "build images",
		Watches:   []controller.Watch{{Informer: configs}, changes},
		Reconcile: l.reconcile, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
	}, nil
}

// watchedStreams returns the image streams that a configuration's triggers watch, as
// <namespace>/<name>.
func watchedStreams(object any) (streams []string) {
	config := object.(*buildv1.BuildConfig)
	for i := range config.Spec.Triggers {
		if trigger := config.Spec.Triggers[i].ImageChange; trigger != nil {
			if tag := instantiate.Watched(config, trigger); tag != nil {
				name, _, _ := strings.Cut(tag.Name, ":")
				streams = append(streams, namespaceOf(config, tag)+"/"+name)
			}
		}
	}
	return streams
}

func namespaceOf(config *buildv1.BuildConfig, tag *corev1.ObjectReference) string {
	if tag.Namespace == "" {
		return config.Namespace
	}
	return tag.Namespace
}

func (l *imageChangeController) reconcile(ctx context.Context, key controller.Key) error {
	config, live, err := controller.Live(l.configs.BuildConfigs(key.Namespace).Get(key.Name))
	if !live || instantiate.Paused(config) {
		return err
	}
	forbidden := ""
	images := l.access.images(ctx, l.streams, config.Namespace, &config.Spec.CommonSpec, &forbidden)
	for i := range config.Spec.Triggers {
		trigger := config.Spec.Triggers[i].ImageChange
		if trigger == nil || trigger.Paused {
			continue
		}
		tag := instantiate.Watched(config, trigger)
		if tag == nil {
			continue
		}
		image, err := images.Resolve(config.Namespace, tag)
		if err != nil || image == trigger.LastTriggeredImageID { // a new image causes a reconcile
			continue
		}
		from := &corev1.ObjectReference{Kind: tag.Kind, Namespace: namespaceOf(config, tag), Name: tag.Name}
		// The request also updates the images of the other triggers.
		return instantiateBuild(ctx, l.client, l.events, config, &buildv1.BuildRequest{
			From: from, TriggeredByImage: &corev1.ObjectReference{Kind: instantiate.DockerKind, Name: image},
			TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Image change", ImageChangeBuild: &buildv1.ImageChangeCause{ImageID: image, FromRef: from}}},
		})
	}
	if forbidden != "" {
		l.events.Event(config, corev1.EventTypeWarning, pull.ForbiddenReason, forbidden)
		return controller.RequeueAfter(pull.RecheckInterval)
	}
	return nil
}
